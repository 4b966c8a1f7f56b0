package ir

import "strings"

// BackendTLS configures TLS connections to the endpoints of a backend. It is comparable.
type BackendTLS struct {
	// Secret is the name of a Secret. It contains the certificate authorities that sign the certificates of endpoints.
	// It may also contain a client certificate with its key. While the Secret is invalid, no requests are sent to the
	// endpoints. Without a Secret, no client certificate is sent, and requests fail if Verify is set.
	Secret Name `json:"secret"`
	// Verify requires that the certificate of an endpoint is signed by a certificate authority in ca.crt of the Secret.
	// The system's certificate authorities are not used.
	Verify bool `json:"verify,omitempty"`
	// Depth is the maximum number of intermediate certificates between the certificate of an endpoint and a certificate
	// in ca.crt.
	Depth int `json:"verify_depth,omitempty"`
	// Name is the host name for which the certificate of an endpoint must be valid. If SendName is set, Name is also
	// sent as the server name (SNI). For requests, it may contain nginx variables.
	Name     string `json:"name,omitempty"`
	SendName bool   `json:"server_name,omitempty"`
	// MinVersion and MaxVersion are values of TLSVersions. If they are empty, the minimum is TLS 1.2 and the maximum is
	// the newest version.
	MinVersion string `json:"min_version,omitempty"`
	MaxVersion string `json:"max_version,omitempty"`
	// Ciphers lists the IANA names of cipher suites of TLS 1.2 and older, separated by spaces. If it is empty, Go's
	// secure cipher suites are used.
	Ciphers string `json:"ciphers,omitempty"`
}

// NameVaries reports whether Name contains variables.
func (t *BackendTLS) NameVaries() bool { return strings.Contains(t.Name, "$") }

// TLSVersions lists Caddy's names of the TLS versions that can be used with endpoints, oldest first.
var TLSVersions = []string{"tls1.0", "tls1.1", "tls1.2", "tls1.3"}
