package ir

// Match is which requests a route is for: those whose path and, if there are any, whose conditions match.
type Match struct {
	PathMatch
	// Conditions are nil for a route that asks for nothing beside the path. Such a route comes after those with conditions.
	Conditions *Conditions
}

// MatchType says how PathMatch.Path is compared with the path of a request.
type MatchType string

const (
	// MatchExact is equal, case included.
	MatchExact MatchType = "exact"
	// MatchPrefix is equal element by element: /foo matches /foo, /foo/ and /foo/bar, and not /foobar.
	MatchPrefix MatchType = "prefix"
	// MatchRegex is ingress-nginx's: anchored at the start only, case-insensitive.
	MatchRegex MatchType = "regex"
)

// PathMatch is a condition on the path of a request.
type PathMatch struct {
	Type MatchType
	// Path begins with a slash; with MatchRegex it is an RE2 pattern.
	Path string
}

// Conditions are what a route asks of a request beside its path. All of them must hold.
type Conditions struct {
	// Method is the one that matches, such as GET; empty is every method.
	Method string `json:"method,omitempty"`
	// Headers, Query and Cookies are compared with the value of the name in the request. Several header fields of one name
	// are one value, joined by commas; of several query parameters or cookies of one name the first counts. Header names
	// match whatever their case.
	Headers []ValueMatch `json:"headers,omitempty"`
	Query   []ValueMatch `json:"query,omitempty"`
	Cookies []ValueMatch `json:"cookies,omitempty"`
	// Session asks for a session cookie that belongs to the first backend of the route.
	Session bool `json:"session,omitempty"`
}

// ValueMatch is a condition on one named value of a request. A request without the value does not match.
type ValueMatch struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Regex says that Value is an RE2 pattern, which is searched in the value of the request. Otherwise both are equal.
	Regex bool `json:"regex,omitempty"`
}
