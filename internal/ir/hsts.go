package ir

import "strconv"

// HSTS is the Strict-Transport-Security header of all answers over TLS. The zero value is ingress-nginx's default: a year,
// with subdomains.
type HSTS struct {
	Off bool `json:"off,omitempty"`
	// MaxAge is in seconds. Zero is a year; less than zero is 0, which makes browsers forget.
	MaxAge            int  `json:"max_age,omitempty"`
	ExcludeSubdomains bool `json:"exclude_subdomains,omitempty"`
	Preload           bool `json:"preload,omitempty"`
}

// defaultMaxAge is ingress-nginx's hsts-max-age.
const defaultMaxAge = 31536000

// Header returns the value of the header. It is empty where there is none.
func (h HSTS) Header() string {
	if h.Off {
		return ""
	}
	age := h.MaxAge
	if age == 0 {
		age = defaultMaxAge
	}
	value := "max-age=" + strconv.Itoa(max(age, 0))
	if !h.ExcludeSubdomains {
		value += "; includeSubDomains"
	}
	if h.Preload {
		value += "; preload"
	}
	return value
}
