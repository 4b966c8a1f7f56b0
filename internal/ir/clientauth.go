package ir

// ClientAuth asks the clients of a virtual host for a certificate.
type ClientAuth struct {
	// Secret has ca.crt, the certificates that client certificates are issued by, and ca.crl where there are lists of those
	// that were revoked.
	Secret Name         `json:"secret,omitzero"`
	Verify ClientVerify `json:"verify,omitempty"`
	// Depth is how many certificates may stand between that of the client and one of ca.crt.
	Depth int `json:"depth,omitempty"`
	// ErrorPage is the URL that clients without a good certificate are sent to; empty is an answer with status 400.
	ErrorPage string `json:"error_page,omitempty"`
	// PassCertificate hands the certificate to the backend.
	PassCertificate bool `json:"pass_certificate,omitempty"`
	// Subject is a regular expression that is searched in the distinguished name of the client. Empty lets every client in.
	Subject string `json:"subject,omitempty"`
	// Closed answers every request with 403, because what the user wrote cannot be done.
	Closed bool   `json:"closed,omitempty"`
	Origin Origin `json:"origin,omitzero"`
}

// ClientVerify says which clients are let in.
type ClientVerify string

const (
	// VerifyOn lets clients in whose certificate is good.
	VerifyOn ClientVerify = "on"
	// VerifyOff asks for no certificate.
	VerifyOff ClientVerify = "off"
	// VerifyOptional lets clients in that have no certificate, too.
	VerifyOptional ClientVerify = "optional"
	// VerifyOptionalNoCA lets everybody in, and tells the backend what the matter is with a certificate.
	VerifyOptionalNoCA ClientVerify = "optional_no_ca"
)
