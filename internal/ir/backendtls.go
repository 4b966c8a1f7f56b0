package ir

// BackendTLS is how TLS is spoken with the endpoints of a backend. It can be compared.
type BackendTLS struct {
	// Secret has the pair that is shown to endpoints, if it has one, and the certificates that theirs are issued by. While it
	// is no good nothing is sent.
	Secret Name `json:"secret"`
	// Verify looks at the certificates of endpoints: they are issued by ca.crt of the Secret, and by nobody else.
	Verify bool `json:"verify,omitempty"`
	// Depth is how many certificates may stand between that of an endpoint and one of ca.crt.
	Depth int `json:"verify_depth,omitempty"`
	// Name is the one that the certificate of an endpoint has to be for. With SendName it is in the handshake, too.
	Name     string `json:"name,omitempty"`
	SendName bool   `json:"server_name,omitempty"`
	// MinVersion and MaxVersion are of TLSVersions. Empty is 1.2, and the newest there is.
	MinVersion string `json:"min_version,omitempty"`
	MaxVersion string `json:"max_version,omitempty"`
	// Ciphers are those of TLS 1.2 and older by IANA's names, with spaces between them. Empty is those that are good.
	Ciphers string `json:"ciphers,omitempty"`
}

// TLSVersions are the versions that can be spoken with endpoints, the oldest first, in Caddy's words.
var TLSVersions = []string{"tls1.0", "tls1.1", "tls1.2", "tls1.3"}
