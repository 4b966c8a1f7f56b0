package ir

// Canary configures which requests of a route go to the canary backend (ingress-nginx's canary-* annotations). Package
// hosts translates it into conditions and weights.
type Canary struct {
	// Weight and Total set the share of requests that go to the canary: Weight out of every Total requests. They apply
	// only to requests for which neither Header nor Cookie selects a backend. Total is not zero.
	Weight, Total int
	// Header is the name of a request header. If HeaderValue or HeaderPattern is set, a request goes to the canary if
	// the value of the header is HeaderValue, or if the RE2 pattern HeaderPattern matches a part of it. If both are
	// empty, the value "always" selects the canary and "never" the main backend. BadHeaderPattern is set if the pattern
	// is invalid; in this case the header never selects the canary.
	Header, HeaderValue, HeaderPattern string
	BadHeaderPattern                   bool
	// Cookie is the name of a cookie whose value "always" selects the canary and whose value "never" selects the main
	// backend.
	Cookie string
	// OwnAffinity makes requests to the canary use the session affinity settings of the canary Ingress. Otherwise they
	// use the settings of the main Ingress.
	OwnAffinity bool
	// Closed is set if the canary gets no requests at all.
	Closed bool
}
