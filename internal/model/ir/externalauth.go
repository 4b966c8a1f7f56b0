package ir

import (
	"regexp"
	"slices"
	"time"
)

// ExternalAuth sends each request to an external authentication service first. The service accepts the request, rejects
// it with 401 or 403, or redirects the client.
type ExternalAuth struct {
	// URL is the address of the service, and may contain nginx variables. Method is the HTTP method; empty means GET.
	URL    string `json:"url"`
	Method string `json:"method,omitempty"`
	// SignIn is the URL to which clients are redirected instead of getting 401. It may contain nginx variables. If it
	// is empty, clients get 401.
	SignIn string `json:"sign_in,omitempty"`
	// RequestRedirect is the value of X-Auth-Request-Redirect in the request to the service. It may contain nginx
	// variables. If it is empty, the request URI of the client is sent.
	RequestRedirect string `json:"request_redirect,omitempty"`
	// ResponseHeaders lists the header fields that are copied from the service's response into the request to the
	// backend. Fields with these names from the client are removed.
	ResponseHeaders []string `json:"response_headers,omitempty"`
	// KeptHeaders lists more header fields of the response, which programs use (see Program.AuthHeaders).
	KeptHeaders []string `json:"kept_headers,omitempty"`
	// SetHeaders are additional header fields of the request to the service. Their values may contain nginx variables.
	SetHeaders []Header `json:"set_headers,omitempty"`
	// Program runs for each request before the service is asked. If it returns a response, the service is not asked,
	// and the status of the response decides as the status of the service does. Otherwise its InputHeaders and
	// EndpointHeaders apply to the request to the service, after SetHeaders. It must not rewrite the path or end the
	// steps, and its other directives have no effect. Nil means that there is no program.
	Program *Program `json:"program,omitempty"`
	// AlwaysSetCookie adds the service's cookies to every response. Otherwise they are added only to responses with the
	// status codes for which nginx's add_header has an effect, such as 200 and 302.
	AlwaysSetCookie bool `json:"always_set_cookie,omitempty"`

	// CacheKey enables caching of the service's responses. It may contain nginx variables. If it is empty, nothing is
	// cached. CacheFor sets which statuses are cached, and for how long.
	CacheKey string         `json:"cache_key,omitempty"`
	CacheFor []AuthLifetime `json:"cache_for,omitempty"`

	// Connect is the timeout for opening a connection. Read and Write are the maximum times without receiving or
	// sending data, respectively; after that, the connection is closed.
	Connect time.Duration `json:"connect_timeout,omitempty"`
	Read    time.Duration `json:"read_timeout,omitempty"`
	Write   time.Duration `json:"write_timeout,omitempty"`
	// KeepAlive is the maximum number of idle connections: zero means 320, and a negative value means none.
	// KeepAliveTimeout is how long an idle connection is kept: zero means 60 s. KeepAliveRequests is the maximum number
	// of requests on one connection: zero means 1000.
	KeepAlive         int           `json:"keepalive,omitempty"`
	KeepAliveTimeout  time.Duration `json:"keepalive_timeout,omitempty"`
	KeepAliveRequests int           `json:"keepalive_requests,omitempty"`
}

// AuthLifetime is how long responses with the given status codes are cached.
type AuthLifetime struct {
	Statuses []int         `json:"statuses"`
	For      time.Duration `json:"for"`
}

// Guards implements Filter.
func (ExternalAuth) Guards() Guard { return SomeRequests }

// The regular expression ofRoute matches the nginx variables whose values depend on the route and not on the request.
var ofRoute = regexp.MustCompile(
	`\$\{?(namespace|ingress_name|service_name|service_port|location_path|proxy_upstream_name)\b`)

// GuardsByRoute reports whether the decision of any of the filters may depend on the route. If so, the filters may
// accept a client on one route, while equal filters reject the same client on another route.
func GuardsByRoute(filters []Filter) bool {
	return slices.ContainsFunc(filters, func(f Filter) bool {
		switch f := f.(type) {
		case AnyOf:
			return GuardsByRoute(f.Filters)
		case Program:
			return f.Guards() != NoRequests && f.readsRoute()
		case ExternalAuth:
			return ofRoute.MatchString(f.URL) || f.Program != nil && f.Program.namesRoute() ||
				slices.ContainsFunc(f.SetHeaders, func(h Header) bool { return ofRoute.MatchString(h.Value) })
		}
		return false
	})
}
