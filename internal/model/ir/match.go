package ir

// A Match selects the requests of a route. Both the path and the conditions must match.
type Match struct {
	PathMatch
	// Everywhere makes a location apply to requests for routes of other namespaces, too.
	Everywhere bool
	// Within is the location in which a location stands, or nil. A regular expression in another location only applies
	// to paths that the other location would serve without it.
	Within *PathMatch
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

// The types of locations, which come from snippets for servers. A location applies to requests that a route of its
// namespace, or no route, would serve otherwise. Among the locations and this route, nginx's order decides: a location
// with an equal path, the longest prefix if it says so, the regular expressions in the order of the routes, and then
// the longest prefix. The values are written as in nginx.
const (
	// LocationExact requires equal paths.
	LocationExact MatchType = "location ="
	// LocationPrefix compares the beginning of the path, so /foo matches /foobar, too.
	LocationPrefix MatchType = "location"
	// LocationPrefixOnly is a LocationPrefix that precedes regular expressions.
	LocationPrefixOnly MatchType = "location ^~"
	// LocationRegex and LocationRegexFold are regular expressions that match any part of the path. The second one
	// ignores case.
	LocationRegex     MatchType = "location ~"
	LocationRegexFold MatchType = "location ~*"
	// LocationNamed matches no path. Its Path is a name that begins with "@", and filters pass requests to it.
	LocationNamed MatchType = "location @"
)

// IsLocation reports whether t is the type of a location.
func (t MatchType) IsLocation() bool {
	switch t {
	case LocationExact, LocationPrefix, LocationPrefixOnly, LocationRegex, LocationRegexFold, LocationNamed:
		return true
	case MatchExact, MatchPrefix, MatchRegex:
	}
	return false
}

// PathMatch is a condition on the path of a request.
type PathMatch struct {
	Type MatchType `json:"type"`
	// Path begins with a slash. For MatchRegex, LocationRegex and LocationRegexFold, it is an RE2 pattern.
	Path string `json:"path"`
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
