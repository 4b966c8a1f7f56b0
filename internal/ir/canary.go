package ir

// Canary says which requests of a route another backend gets: ingress-nginx's canary-* annotations. Package hosts makes
// conditions and weights of it.
type Canary struct {
	// Weight of Total requests go to the canary, of those about which nothing below decides. Total is not zero.
	Weight, Total int
	// Header is the name of a header field. A request goes to the canary if its value is HeaderValue, or if HeaderPattern, which
	// is RE2, is found in it. Where both are empty, "always" goes to the canary and "never" does not. With BadHeaderPattern no
	// request with the header goes to the canary.
	Header, HeaderValue, HeaderPattern string
	BadHeaderPattern                   bool
	// Cookie is the name of a cookie, with "always" and "never" for its values.
	Cookie string
	// OwnAffinity keeps the session affinity that the canary asks for itself. Otherwise it has that of the main route.
	OwnAffinity bool
	// Closed gets no requests at all.
	Closed bool
}
