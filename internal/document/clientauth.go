package document

// ClientAuth says which clients of a host are let in, by their certificates.
type ClientAuth struct {
	// Secret is "namespace/name" of the one with ca.crt, and with ca.crl where there are lists of revoked certificates.
	Secret string `json:"secret,omitempty"`
	// Verify is "on", "off", "optional" (clients without a certificate are let in) or "optional_no_ca" (everybody is, and the
	// backend is told of a certificate that is no good).
	Verify string `json:"verify,omitempty"`
	// Depth is how many certificates may stand between that of the client and one that is believed.
	Depth int `json:"depth,omitempty"`
	// ErrorPage is where clients are sent that are not let in; without one they get 400.
	ErrorPage string `json:"error_page,omitempty"`
	// PassCertificate hands the certificate to the backend.
	PassCertificate bool `json:"pass_certificate,omitempty"`
	// Subject is a regular expression, which is searched in the distinguished name of the client.
	Subject string `json:"subject,omitempty"`
	// Closed answers every request with 403.
	Closed bool `json:"closed,omitempty"`
	// Origin is the object that asks for it, as "Kind/namespace/name".
	Origin string `json:"origin,omitempty"`
}
