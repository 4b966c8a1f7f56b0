package ir

// Filter changes a request or its response, or answers in place of the backend. The types of this file are all there are;
// each is one case in package render.
type Filter interface {
	// Guards says whether the filter may keep requests from the backend. Streams of a route end when its guards change: the
	// clients that opened them may not be let in any more.
	Guards() bool
}

// URLRewrite changes the path or the host of a request for the backend. The query stays. At most one of Target and Prefix is
// set; both empty leave the path as it is.
type URLRewrite struct {
	// Target replaces the whole path. It may refer to the groups of the route's regular expression: $1 to $9.
	Target string `json:"target,omitempty"`
	// Prefix replaces the part of the path that a route of the type MatchPrefix has matched: with "/bar" for the prefix "/foo",
	// "/foo/x" becomes "/bar/x". It begins with a slash, and "/" removes the part.
	Prefix string `json:"prefix,omitempty"`
	// Host is the Host header for the backend; empty is that of the request.
	Host string `json:"host,omitempty"`
}

// HTTPSRedirect sends requests that come without TLS to HTTPS. It is the first filter of its route.
type HTTPSRedirect struct {
	// Status is that of the answer, such as 308.
	Status int `json:"status"`
	// Port stands in the Location; zero leaves it out.
	Port int `json:"port,omitempty"`
	// KeepSlash keeps a slash at the end of what was asked for. ingress-nginx removes it.
	KeepSlash bool `json:"keep_slash,omitempty"`
}

// Redirect answers with the way to another URL. What is empty is as in the request; the query stays.
type Redirect struct {
	Status int `json:"status_code"`
	// Scheme is "http" or "https".
	Scheme string `json:"scheme,omitempty"`
	Host   string `json:"host,omitempty"`
	// Port zero is the default of Scheme, or the port of the request where Scheme is empty, too.
	Port int `json:"port,omitempty"`
	// Path is changed as a URLRewrite would.
	Target string `json:"target,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	// URL is the whole of it, and nothing is as in the request then.
	URL string `json:"url,omitempty"`
}

// RewriteRedirect answers with the way to a URL with parts of the request in it.
type RewriteRedirect struct {
	// Target is a URL with nginx variables in it, and with $1 to $9, the groups of the route's regular expression. The query of the request
	// comes behind it, unless it ends with "?".
	Target string `json:"target"`
}

// HostRedirect answers with the way to the same on another host. Scheme and port are those that the client has asked for.
type HostRedirect struct {
	Status int    `json:"status_code"`
	Host   string `json:"host"`
}

// AppRoot sends whoever asks for "/" to another path of the same host. The query is left out.
type AppRoot struct {
	Path string `json:"path"`
	// Relative leaves the scheme and the host out of the answer.
	Relative bool `json:"relative,omitempty"`
}

// RequestHeaders changes the header fields that the backend gets.
type RequestHeaders struct{ HeaderChanges }

// ResponseHeaders changes the header fields that the client gets.
type ResponseHeaders struct{ HeaderChanges }

// HeaderChanges are made in this order: Remove, Set, Add. Names match whatever their case.
type HeaderChanges struct {
	// Set replaces the fields of a name by one, Add adds another one.
	Set []Header `json:"set,omitempty"`
	Add []Header `json:"add,omitempty"`
	// Remove are names.
	Remove []string `json:"remove,omitempty"`
}

// Header is one header field.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// HandlerChain is a list of Caddy handlers that the administrator has put into the Caddyfile under a name.
type HandlerChain struct {
	Name string `json:"name"`
}

// DirectResponse answers in place of the backend, and of the filters behind it.
type DirectResponse struct {
	Status int `json:"status_code"`
}

// The responses of routes that have no backend for a request.
var (
	// Forbidden is for clients that may not be let in.
	Forbidden = DirectResponse{403}
	// NotFound is for a request that no rule is for.
	NotFound = DirectResponse{404}
	// InvalidBackend is for the share of a backend that a Gateway API route may not have, or that does not exist.
	InvalidBackend = DirectResponse{500}
	// Unavailable is for a route that is closed.
	Unavailable = DirectResponse{503}
)

// CORS adds the headers by which browsers let scripts of other origins read answers, and answers OPTIONS with 204. Origins are in lower
// case: "*" for any, or as the Origin header has them, where the first label of the host may be "*".
type CORS struct {
	Origins []string `json:"origins"`
	// Methods, Headers and Expose are the values of their headers; empty leaves one out.
	Methods     string `json:"methods,omitempty"`
	Headers     string `json:"headers,omitempty"`
	Expose      string `json:"expose,omitempty"`
	Credentials bool   `json:"credentials,omitempty"`
	// MaxAge is in seconds.
	MaxAge int `json:"max_age"`
}

// Guards implements Filter. It is browsers that keep scripts from answers.
func (CORS) Guards() bool { return false }

// SourceRanges lets in clients by their address: none of Deny, and, where Allow is not nil, those of Allow alone. Both are CIDRs. Others
// get 403.
type SourceRanges struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// BasicAuth lets in clients by a name and a password. Others get 401.
type BasicAuth struct {
	Users Users `json:"users"`
	// Realm is what clients show to those whom they ask for a password. It has no quotes, backslashes and control characters.
	Realm string `json:"realm,omitempty"`
}

// Users are those in a Secret. The value can be compared.
type Users struct {
	Secret Name `json:"secret"`
	// Map says that each key of the Secret is a name, and its value the hash of the password. Otherwise the key "auth" has a file of
	// htpasswd.
	Map bool `json:"map,omitempty"`
}

// AnyOf lets in clients whom one of several filters lets in, which are asked in turn. If none does, the answer is 401 where one of them
// has said that, and the last one's otherwise. A filter that fails in another way than by refusing ends the request.
type AnyOf struct {
	// Filters each either refuse a request or let it in: there are two at least.
	Filters []Filter `json:"-"`
}

// UsersOf returns those whom filters ask for a password.
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
func (BasicAuth) Guards() bool { return true }

// Guards implements Filter.
func (AnyOf) Guards() bool { return true }

// Guards implements Filter.
func (SourceRanges) Guards() bool { return true }

// Guards implements Filter.
func (URLRewrite) Guards() bool { return false }

// RateLimit lets in clients as long as they have not too many requests, and not too many at a time. Zero is any number.
type RateLimit struct {
	// Zone is what the requests are counted for: those of all filters with one zone are counted together.
	Zone string `json:"zone"`
	// RequestsPerSecond and RequestsPerMinute are what a client may have in the long run, Burst how many times as many it may be ahead of
	// that.
	RequestsPerSecond int `json:"requests_per_second,omitempty"`
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
	Burst             int `json:"burst,omitempty"`
	// Connections is how many requests of a client may be under way.
	Connections int `json:"connections,omitempty"`
	// Exempt are networks whose clients are not counted, as CIDRs.
	Exempt []string `json:"exempt,omitempty"`
	// Key is what a client is known by, with nginx variables in it. Empty is its address. A request whose key is empty is not counted.
	Key string `json:"key,omitempty"`
	// Status is that of the answer to a request too many, ConnectionsStatus that to one too many at a time.
	Status            int `json:"status_code"`
	ConnectionsStatus int `json:"connections_status_code"`
}

// Guards implements Filter.
func (RateLimit) Guards() bool { return true }

// Bandwidth has each answer take its time: after the first bytes, so many in a second.
type Bandwidth struct {
	BytesPerSecond int64 `json:"bytes_per_second"`
	After          int64 `json:"after,omitempty"`
}

// Guards implements Filter.
func (Bandwidth) Guards() bool { return false }

// Mirror sends a copy of each request to another service.
type Mirror struct {
	// URL and Host have nginx variables in them. An empty Host is that of the URL.
	URL  string `json:"url"`
	Host string `json:"host,omitempty"`
	// WithoutBody leaves the body out of the copy.
	WithoutBody bool `json:"without_body,omitempty"`
}

// Guards implements Filter.
func (Mirror) Guards() bool { return false }

// Guards implements Filter. A redirect to HTTPS is no matter of who is let in.
func (HTTPSRedirect) Guards() bool { return false }

// Guards implements Filter.
func (RequestHeaders) Guards() bool { return false }

// Guards implements Filter.
func (ResponseHeaders) Guards() bool { return false }

// Guards implements Filter.
func (Redirect) Guards() bool { return true }

// Guards implements Filter.
func (RewriteRedirect) Guards() bool { return true }

// Guards implements Filter.
func (HostRedirect) Guards() bool { return true }

// Guards implements Filter. It is a help for people who leave the path out, and keeps nothing from them.
func (AppRoot) Guards() bool { return false }

// Guards implements Filter. What the handlers do is not known here.
func (HandlerChain) Guards() bool { return true }

// Guards implements Filter.
func (DirectResponse) Guards() bool { return true }
