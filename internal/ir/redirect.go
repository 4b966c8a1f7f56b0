package ir

// HTTPSRedirect sends requests that come without TLS to HTTPS.
type HTTPSRedirect struct {
	// Status is that of the answer, such as 308.
	Status int `json:"status"`
	// Port stands in the Location; zero leaves it out.
	Port int `json:"port,omitempty"`
	// KeepSlash keeps a slash at the end of what was asked for. ingress-nginx takes one off.
	KeepSlash bool `json:"keep_slash,omitempty"`
}
