package ir

import (
	"regexp"
	"slices"
	"time"
)

// ExternalAuth asks an external service about each request, which it lets in, refuses with 401 or 403, or has sent elsewhere.
type ExternalAuth struct {
	// URL is that of the service, with nginx variables in it, and Method is empty for GET.
	URL    string `json:"url"`
	Method string `json:"method,omitempty"`
	// SignIn is where clients are sent in place of 401, with nginx variables in it; empty is nowhere.
	SignIn string `json:"sign_in,omitempty"`
	// RequestRedirect is told to the service, with nginx variables in it; empty is what the client asked for.
	RequestRedirect string `json:"request_redirect,omitempty"`
	// ResponseHeaders are the names that the backend gets of the answer of the service, and never of the client.
	ResponseHeaders []string `json:"response_headers,omitempty"`
	// SetHeaders are told to the service besides, with nginx variables in their values.
	SetHeaders []Header `json:"set_headers,omitempty"`
	// AlwaysSetCookie sets the cookies of the service with every answer; otherwise with those that nginx adds headers to.
	AlwaysSetCookie bool `json:"always_set_cookie,omitempty"`

	// CacheKey has answers kept, by nginx variables; empty is not. CacheFor says which, and for how long.
	CacheKey string         `json:"cache_key,omitempty"`
	CacheFor []AuthLifetime `json:"cache_for,omitempty"`

	// Connect is for a new connection; Read and Write end one on which nothing comes in or goes out for so long.
	Connect time.Duration `json:"connect_timeout,omitempty"`
	Read    time.Duration `json:"read_timeout,omitempty"`
	Write   time.Duration `json:"write_timeout,omitempty"`
	// KeepAlive is how many idle connections are kept, less than zero none, and KeepAliveTimeout for how long; zero is 320 and 60 s.
	// KeepAliveRequests is how many requests a connection may have; zero is 1000.
	KeepAlive         int           `json:"keepalive,omitempty"`
	KeepAliveTimeout  time.Duration `json:"keepalive_timeout,omitempty"`
	KeepAliveRequests int           `json:"keepalive_requests,omitempty"`
}

// AuthLifetime is for how long the answers with some statuses are kept.
type AuthLifetime struct {
	Statuses []int         `json:"statuses"`
	For      time.Duration `json:"for"`
}

// Guards implements Filter.
func (ExternalAuth) Guards() bool { return true }

// ofRoute are the variables whose values are not those of the request.
var ofRoute = regexp.MustCompile(`\$\{?(namespace|ingress_name|service_name|service_port|location_path)\b`)

// GuardsByRoute says whether filters with the same words let in other clients on another route.
func GuardsByRoute(filters []Filter) bool {
	return slices.ContainsFunc(filters, func(f Filter) bool {
		switch f := f.(type) {
		case AnyOf:
			return GuardsByRoute(f.Filters)
		case ExternalAuth:
			return ofRoute.MatchString(f.URL) || slices.ContainsFunc(f.SetHeaders, func(h Header) bool { return ofRoute.MatchString(h.Value) })
		}
		return false
	})
}
