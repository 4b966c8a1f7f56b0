package ir

import "strconv"

// HSTS configures the Strict-Transport-Security header of all responses over TLS. The zero value is ingress-nginx's
// default: one year, with subdomains.
type HSTS struct {
	Off bool `json:"off,omitempty"`
	// MaxAge is in seconds. Zero means one year. A negative value means max-age=0, which makes browsers forget the
	// policy.
	MaxAge            int  `json:"max_age,omitempty"`
	ExcludeSubdomains bool `json:"exclude_subdomains,omitempty"`
	Preload           bool `json:"preload,omitempty"`
}

// defaultMaxAge is the default of ingress-nginx's hsts-max-age, in seconds.
const defaultMaxAge = 31536000

// Header returns the value of the Strict-Transport-Security header, or "" if HSTS is off.
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
