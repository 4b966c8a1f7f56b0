package ir

// Canary configures which requests of a route go to the canary backend (ingress-nginx's canary-* annotations). Package
// hosts translates it into conditions and weights.
type Canary struct {
	// Weight out of every Total requests go to the canary. This applies to requests for which neither the header nor
	// the cookie decides. Total is not zero.
	Weight, Total int
	// Header is the name of a header field. A request goes to the canary if the value of the field is HeaderValue, or
	// if the RE2 pattern HeaderPattern matches a part of the value. If both are empty, "always" selects the canary and
	// "never" the main backend. BadHeaderPattern is set if the pattern is invalid. Then the header selects the canary
	// for no request.
	Header, HeaderValue, HeaderPattern string
	BadHeaderPattern                   bool
	// Cookie is the name of a cookie whose value "always" selects the canary and whose value "never" selects the main
	// backend.
	Cookie string
	// OwnAffinity uses the session affinity that the canary configures. Otherwise the canary uses the session affinity
	// of the main route.
	OwnAffinity bool
	// Closed is set if the canary gets no requests at all.
	Closed bool
}
