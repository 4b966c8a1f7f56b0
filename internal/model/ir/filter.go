package ir

import (
	"cmp"
	"slices"
	"strconv"
)

// A Filter changes a request or its response, or responds instead of the backend. All implementations are in this
// file, in program.go and in zonelimits.go. Package render has one case for each of them.
type Filter interface {
	// Guards returns which requests the filter may keep from the backend. The result may depend on the settings of the
	// filter. If any filter that guards a route changes, the open streams of the route are ended, because their clients
	// may no longer be allowed.
	Guards() Guard
}

// Guard says which requests a filter may keep from the backend. A larger value is stricter.
type Guard int

const (
	// NoRequests means that the filter restricts nothing.
	NoRequests Guard = iota
	// SomeRequests means that the filter decides by what a request contains or by earlier requests, or redirects.
	SomeRequests
	// SomeClients means that the filter rejects all requests of some clients, only because of their address. The TLS
	// connections of a host are not passed through if this guard would not apply to them.
	SomeClients
	// AllRequests means that the filter rejects all requests. As for SomeClients, TLS connections are not passed
	// through. Requests are not redirected to HTTPS first, unless an earlier filter may ask clients for a password.
	AllRequests
)

// Strictest returns the strictest guard of the filters. A filter inside AnyOf counts like any other filter.
func Strictest(filters []Filter) (strictest Guard) {
	for _, f := range filters {
		strictest = max(strictest, f.Guards())
		if list, ok := f.(AnyOf); ok {
			strictest = max(strictest, Strictest(list.Filters))
		}
	}
	return strictest
}

// RejectAll reports whether the filters reject every request, and none of them checks what the request contains first.
func RejectAll(filters []Filter) bool {
	for _, f := range filters {
		switch f.Guards() {
		case AllRequests:
			return true
		case SomeRequests:
			return false
		case NoRequests, SomeClients:
		}
	}
	return false
}

// URLRewrite changes the path or the host of the request to the backend. The query is kept. At most one of Target and
// Prefix is set. If both are empty, the path is not changed.
type URLRewrite struct {
	// Target replaces the whole path. It may contain $1 to $9, the capture groups of the route's regular expression,
	// and the names of its groups.
	Target string `json:"target,omitempty"`
	// Prefix replaces the part of the path that matches a route of type MatchPrefix. Prefix begins with a slash. For
	// example, if Prefix is "/bar" and the route has the prefix "/foo", the path "/foo/x" becomes "/bar/x". If Prefix
	// is "/", the matched part is removed.
	Prefix string `json:"prefix,omitempty"`
	// Host is the Host header for the backend. If it is empty, the host of the request is sent.
	Host string `json:"host,omitempty"`
}

// HTTPSRedirect redirects requests without TLS to HTTPS. It is the first filter of its route.
type HTTPSRedirect struct {
	// Status is the status code of the response, such as 308.
	Status int `json:"status"`
	// Port is the port in the Location header. Zero leaves it out.
	Port int `json:"port,omitempty"`
	// KeepSlash keeps a slash at the end of the request URI. ingress-nginx removes it.
	KeepSlash bool `json:"keep_slash,omitempty"`
}

// Redirect redirects to another URL. Empty fields are taken from the request. The query is kept.
type Redirect struct {
	Status int `json:"status_code"`
	// Scheme is "http" or "https".
	Scheme string `json:"scheme,omitempty"`
	Host   string `json:"host,omitempty"`
	// Port is the port of the URL. Zero means the default port of Scheme, or the port of the request if Scheme is
	// empty, too.
	Port int `json:"port,omitempty"`
	// Target and Prefix replace the path as in URLRewrite.
	Target string `json:"target,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	// URL is the complete URL of the redirect. If it is set, nothing is taken from the request.
	URL string `json:"url,omitempty"`
}

// RewriteRedirect redirects to a URL that may contain parts of the request.
type RewriteRedirect struct {
	// Target is the URL. It may contain nginx variables and $1 to $9, the capture groups of the route's regular
	// expression. The query of the request is appended unless Target ends with "?".
	Target string `json:"target"`
}

// HostRedirect redirects to the same path and query on another host, without the slash at the end of the URL. The
// scheme and the port are taken from the request.
type HostRedirect struct {
	Status int    `json:"status_code"`
	Host   string `json:"host"`
}

// AppRoot redirects requests for "/" to another path of the same host, without the query.
type AppRoot struct {
	Path string `json:"path"`
	// Relative leaves the scheme and the host out of the Location header.
	Relative bool `json:"relative,omitempty"`
}

// WithoutAuthorization removes the client's Authorization header from requests to the backend. Filters and variables
// still have it.
type WithoutAuthorization struct{}

// ResponseHeaders changes the header fields of responses to the client.
type ResponseHeaders struct{ HeaderChanges }

// HeaderChanges lists changes to header fields. They are applied in the order Remove, Set, Add. Names are
// case-insensitive.
type HeaderChanges struct {
	// Set lists header fields that replace all existing fields with the same name. Add lists header fields that are
	// added to existing fields with the same name.
	Set []Header `json:"set,omitempty"`
	Add []Header `json:"add,omitempty"`
	// Remove lists the names of fields to remove.
	Remove []string `json:"remove,omitempty"`
}

// Header is one header field.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// HandlerChain runs a named list of Caddy handlers, which the administrator has defined in the Caddyfile.
type HandlerChain struct {
	Name string `json:"name"`
}

// DefaultChains runs named lists of Caddy handlers that the administrator has set for the object with the route. Names
// is not empty. Until a request has passed all lists, the error pages of the object do not apply to it.
type DefaultChains struct {
	Names []string `json:"names"`
}

// StubStatus responds with the numbers of connections and requests of the process, in the format of nginx's module
// stub_status. Neither the filters after it nor the backend get the request.
type StubStatus struct{}

// DirectResponse responds with a status code. Neither the filters after it nor the backend get the request.
type DirectResponse struct {
	Status int `json:"status_code"`
}

// Predefined responses for requests that are not sent to a backend.
var (
	// Forbidden rejects clients that must not have access.
	Forbidden = DirectResponse{403}
	// NotFound is the response to requests that match no rule.
	NotFound = DirectResponse{404}
	// InvalidBackend is the response to requests that a Gateway API route sends to a backend that does not exist or is
	// not allowed.
	InvalidBackend = DirectResponse{500}
	// Unavailable is the response of a route that rejects all requests.
	Unavailable = DirectResponse{503}
)

// CORS adds the header fields that allow scripts from other origins to read responses in browsers, and responds to
// OPTIONS requests with 204. Origins lists the allowed origins in lower case, in the form of the Origin header. The
// first label of a host may be "*". The string "*" allows every origin.
type CORS struct {
	Origins []string `json:"origins"`
	// Methods, Headers and Expose are the values of the header fields Access-Control-Allow-Methods,
	// Access-Control-Allow-Headers and Access-Control-Expose-Headers. An empty value leaves the field out.
	Methods     string `json:"methods,omitempty"`
	Headers     string `json:"headers,omitempty"`
	Expose      string `json:"expose,omitempty"`
	Credentials bool   `json:"credentials,omitempty"`
	// MaxAge is in seconds.
	MaxAge int `json:"max_age"`
}

// Guards implements Filter. It returns NoRequests because browsers enforce CORS; the backend gets all requests.
func (CORS) Guards() Guard { return NoRequests }

// SourceRanges accepts clients by address. It rejects with 403 all addresses in Deny and, if Allow is not nil, all
// addresses outside Allow. Both lists contain CIDRs.
type SourceRanges struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// AccessRules accepts clients by address, as nginx's directives allow and deny do. The first rule whose network
// contains the address of the client decides: the client is accepted, or gets 403. If no rule matches, the client is
// accepted.
type AccessRules struct {
	Rules []AccessRule `json:"rules"`
	// LimitExcept has the rules that apply to requests with other methods in place of Rules. Nil means that Rules apply
	// to all requests.
	LimitExcept *LimitExcept `json:"limit_except,omitempty"`
}

// LimitExcept has rules for requests with other methods than Methods, as nginx's limit_except does. Methods are case
// sensitive.
type LimitExcept struct {
	Methods []string     `json:"methods"`
	Rules   []AccessRule `json:"rules"`
}

// AccessRule allows or denies the clients of one network. Network is a CIDR, or AllClients.
type AccessRule struct {
	Allow   bool   `json:"allow,omitempty"`
	Network string `json:"network"`
}

// AllClients is the value of AccessRule.Network for a rule that matches all clients, including clients without an IP
// address.
const AllClients = "all"

// Maintenance rejects all clients with 503, except those whose addresses are in Allow, a list of CIDRs.
type Maintenance struct {
	Allow []string `json:"allow,omitempty"`
}

// BasicAuth accepts clients by user name and password. Other clients get 401.
type BasicAuth struct {
	Users Users `json:"users"`
	// Realm is the string that browsers show when they ask for a password. It contains no quotes, backslashes or
	// control characters.
	Realm string `json:"realm,omitempty"`
}

// Users refers to the Secret with the user names and passwords. It is comparable.
type Users struct {
	Secret Name `json:"secret"`
	// Map is set if each key of the Secret is a user name and each value is a password hash. Otherwise the key "auth"
	// contains an htpasswd file.
	Map bool `json:"map,omitempty"`
}

// Compare orders Users by the name of the Secret. If two Users refer to the same Secret, the one with an htpasswd file
// comes first.
func (u Users) Compare(other Users) int {
	return cmp.Or(u.Secret.Compare(other.Secret),
		cmp.Compare(strconv.FormatBool(u.Map), strconv.FormatBool(other.Map)))
}

// AnyOf accepts a client if at least one of its filters accepts the client. The filters are tried in order. If all of
// them reject the request, the response is 401 if a filter returned 401, otherwise the first response with 403. If a
// filter returns any other error, AnyOf returns this error and does not try the remaining filters.
type AnyOf struct {
	// Filters contains at least two filters. Each of them either accepts or rejects a request.
	Filters []Filter `json:"-"`
}

// UsersOf returns the Users of all BasicAuth filters, including filters inside AnyOf.
func UsersOf(filters []Filter) (all []Users) {
	for _, f := range filters {
		switch f := f.(type) {
		case BasicAuth:
			all = append(all, f.Users)
		case AnyOf:
			all = append(all, UsersOf(f.Filters)...)
		}
	}
	return all
}

// Guards implements Filter.
func (BasicAuth) Guards() Guard { return SomeRequests }

// Guards implements Filter. It returns SomeRequests because a client that one filter rejects may pass another one.
func (AnyOf) Guards() Guard { return SomeRequests }

// Guards implements Filter.
func (SourceRanges) Guards() Guard { return SomeClients }

// Guards implements Filter.
func (m Maintenance) Guards() Guard {
	if len(m.Allow) == 0 {
		return AllRequests
	}
	return SomeClients
}

// Guards implements Filter. It depends on the rules: a first rule that denies all clients rejects all requests.
func (a AccessRules) Guards() Guard {
	of := guardOf(a.Rules)
	if a.LimitExcept == nil {
		return of
	}
	other := guardOf(a.LimitExcept.Rules)
	switch {
	case of == other:
		return of
	case of == SomeClients || other == SomeClients:
		return SomeClients
	}
	return SomeRequests
}

// guards returns which requests the rules reject. l may be nil.
func (l *LimitExcept) guards() Guard {
	if l == nil {
		return NoRequests
	}
	return AccessRules{LimitExcept: l}.Guards()
}

func guardOf(rules []AccessRule) Guard {
	denies := func(r AccessRule) bool { return !r.Allow }
	switch i := slices.IndexFunc(rules, denies); {
	case i < 0:
		return NoRequests
	case i == 0 && rules[0].Network == AllClients:
		return AllRequests
	}
	return SomeClients
}

// Guards implements Filter.
func (URLRewrite) Guards() Guard { return NoRequests }

// RateLimit limits the request rate and the number of concurrent requests of each client. Zero means no limit.
type RateLimit struct {
	// Zone identifies the set of counters that the filter uses. Filters with the same zone share their counters.
	Zone string `json:"zone"`
	// RequestsPerSecond and RequestsPerMinute are the maximum average rates of a client. Burst is a factor: a client
	// may send up to Burst times the rate as additional requests within a short time.
	RequestsPerSecond int `json:"requests_per_second,omitempty"`
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
	Burst             int `json:"burst,omitempty"`
	// Connections is the maximum number of concurrent requests of a client.
	Connections int `json:"connections,omitempty"`
	// Exempt lists networks, as CIDRs, whose clients are not limited.
	Exempt []string `json:"exempt,omitempty"`
	// Key identifies a client: a string that may contain nginx variables. If Key is empty, the client's address is
	// used. If the variables of Key are empty for a request, the request is not limited.
	Key string `json:"key,omitempty"`
	// Status is the status code of the response if the rate is exceeded. ConnectionsStatus is the status code if there
	// are too many concurrent requests.
	Status            int `json:"status_code"`
	ConnectionsStatus int `json:"connections_status_code"`
}

// Guards implements Filter.
func (RateLimit) Guards() Guard { return SomeRequests }

// Bandwidth limits the rate of each response, in bytes per second. The first After bytes are not limited.
type Bandwidth struct {
	BytesPerSecond int64 `json:"bytes_per_second"`
	After          int64 `json:"after,omitempty"`
}

// Guards implements Filter.
func (Bandwidth) Guards() Guard { return NoRequests }

// Mirror sends a copy of each request to another service.
type Mirror struct {
	// URL is the address of the service. Host is the Host header of the copy; if it is empty, the host of the URL is
	// used. Both may contain nginx variables.
	URL  string `json:"url"`
	Host string `json:"host,omitempty"`
	// WithoutBody omits the request body from the mirrored request.
	WithoutBody bool `json:"without_body,omitempty"`
}

// Guards implements Filter.
func (Mirror) Guards() Guard { return NoRequests }

// Guards implements Filter. It returns NoRequests because a redirect to HTTPS does not restrict which clients have
// access.
func (HTTPSRedirect) Guards() Guard { return NoRequests }

// Guards implements Filter.
func (WithoutAuthorization) Guards() Guard { return NoRequests }

// Guards implements Filter.
func (ResponseHeaders) Guards() Guard { return NoRequests }

// Guards implements Filter.
func (Redirect) Guards() Guard { return SomeRequests }

// Guards implements Filter.
func (RewriteRedirect) Guards() Guard { return SomeRequests }

// Guards implements Filter.
func (HostRedirect) Guards() Guard { return SomeRequests }

// Guards implements Filter. It returns NoRequests because AppRoot does not restrict access: it only redirects requests
// for "/".
func (AppRoot) Guards() Guard { return NoRequests }

// Guards implements Filter. It returns SomeRequests because the handlers may restrict access.
func (HandlerChain) Guards() Guard { return SomeRequests }

// Guards implements Filter. It returns SomeRequests because the handlers may restrict access.
func (DefaultChains) Guards() Guard { return SomeRequests }

// Guards implements Filter.
func (DirectResponse) Guards() Guard { return AllRequests }

// Guards implements Filter.
func (StubStatus) Guards() Guard { return AllRequests }

// PathGroups sets variables to named groups of the route's regular expression.
type PathGroups struct {
	// Names are the names of the groups, in lower case. Other groups set no variables.
	Names []string `json:"names"`
}

// Guards implements Filter.
func (PathGroups) Guards() Guard { return NoRequests }
