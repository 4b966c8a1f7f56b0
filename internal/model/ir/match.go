package ir

// A Match selects the requests of a route. Both the path and the conditions must match.
type Match struct {
	PathMatch
	// Conditions contains the conditions besides the path. It is nil if there are no such conditions. Among the routes
	// for the same path, routes with conditions are tried before a route without conditions.
	Conditions *Conditions
}

// MatchType selects how PathMatch.Path is compared with the path of a request.
type MatchType string

const (
	// MatchExact requires equal paths and is case-sensitive.
	MatchExact MatchType = "exact"
	// MatchPrefix compares path elements: /foo matches /foo, /foo/ and /foo/bar, but not /foobar.
	MatchPrefix MatchType = "prefix"
	// MatchRegex works as in ingress-nginx: anchored only at the start, and case-insensitive.
	MatchRegex MatchType = "regex"
)

// PathMatch is a condition on the path of a request.
type PathMatch struct {
	Type MatchType
	// Path begins with a slash. For MatchRegex it is an RE2 pattern.
	Path string
}

// Conditions are additional conditions on a request besides the path. All of them must match.
type Conditions struct {
	// Method is the HTTP method to match, such as GET. Empty matches all methods.
	Method string `json:"method,omitempty"`
	// Headers, Query and Cookies are compared with the values in the request. Header names are case-insensitive, and
	// several header fields with one name are joined with commas. If a query parameter or cookie occurs several times,
	// the first value is used.
	Headers []ValueMatch `json:"headers,omitempty"`
	Query   []ValueMatch `json:"query,omitempty"`
	Cookies []ValueMatch `json:"cookies,omitempty"`
	// Session matches requests with a session cookie that was set for the first backend of the route.
	Session bool `json:"session,omitempty"`
}

// ValueMatch is a condition on one named value of a request. A request without the value does not match.
type ValueMatch struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Regex is set if Value is an RE2 pattern, which must match a part of the value in the request. Otherwise the two
	// values must be equal.
	Regex bool `json:"regex,omitempty"`
}
