package ir

// ClientAuth asks the clients of a virtual host for a certificate.
type ClientAuth struct {
	// SecretNamespace and SecretName name the Secret with the certificates that client certificates are issued by, and with
	// lists of those that were revoked.
	SecretNamespace string
	SecretName      string
	Verify          ClientVerify
	// Depth is how many certificates may stand between that of the client and one that is believed.
	Depth int
	// ErrorPage is the URL that clients without a good certificate are sent to; empty is an answer with status 400.
	ErrorPage string
	// PassCertificate hands the certificate to the backend.
	PassCertificate bool
	// Subject is a regular expression that is searched in the distinguished name of the client. Empty takes everybody.
	Subject string
	// Closed refuses every request, because what the user wrote cannot be done.
	Closed bool
	Origin Origin
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
