package ir

import "time"

// RoutePolicy holds the settings of a route that reach the server unchanged. The types that describe a route on its way
// from an Ingress to a request embed it: annotations.Settings, hosts.Path, Route, document.Route and exchange.Route.
// They assign it as a whole, so a new setting only needs a field here, an annotation that sets it, and its effect. The
// tags are the names in the JSON configuration of a route. A RoutePolicy must not be changed after it was assigned.
type RoutePolicy struct {
	// Unlogged keeps the requests of the route out of the access log.
	Unlogged bool `json:"unlogged,omitempty"`
	// Tracing configures traces of the requests. Nil disables tracing.
	Tracing *Tracing `json:"tracing,omitempty"`
	// RetryAfter is the value of the Retry-After header in the responses with status 503 that the controller itself
	// sends, in whole seconds. If it is zero, the responses have no such header.
	RetryAfter time.Duration `json:"retry_after,omitempty"`
}
