package ir

// ClientAuth configures client certificates (mTLS) for a virtual host.
type ClientAuth struct {
	// Secret is the name of the Secret with the certificate authorities that sign client certificates (ca.crt) and,
	// optionally, their revocation lists (ca.crl).
	Secret Name         `json:"secret,omitzero"`
	Verify ClientVerify `json:"verify,omitempty"`
	// Depth is the maximum number of intermediate certificates between the client certificate and a certificate in
	// ca.crt.
	Depth int `json:"depth,omitempty"`
	// ErrorPage is the URL to which clients without a valid certificate are redirected. If it is empty, they get status
	// 400.
	ErrorPage string `json:"error_page,omitempty"`
	// PassCertificate sends the client certificate to the backend in a header.
	PassCertificate bool `json:"pass_certificate,omitempty"`
	// Subject is a regular expression that must match a part of the client's distinguished name. If it is empty, every
	// name is accepted.
	Subject string `json:"subject,omitempty"`
	// Closed rejects all requests with 403. It is set if the configuration in the manifest is invalid.
	Closed bool   `json:"closed,omitempty"`
	Origin Origin `json:"origin,omitzero"`
}

// ClientVerify selects which clients are accepted, depending on their certificates.
type ClientVerify string

const (
	// VerifyOn accepts clients that have a valid certificate.
	VerifyOn ClientVerify = "on"
	// VerifyOff accepts all clients and does not request a certificate.
	VerifyOff ClientVerify = "off"
	// VerifyOptional also accepts clients that have no certificate.
	VerifyOptional ClientVerify = "optional"
	// VerifyOptionalNoCA accepts all clients and tells the backend whether the certificate is valid.
	VerifyOptionalNoCA ClientVerify = "optional_no_ca"
)
