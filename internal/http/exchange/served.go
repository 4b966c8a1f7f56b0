package exchange

import (
	"cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// Served describes which Ingress, Service and endpoint have served a request. Unlike an Exchange, it may be used after
// the request has ended.
type Served struct {
	// Route is nil if no path of an Ingress matches the request. Backend is nil if the request has no backend.
	Route   *Route
	Backend *balancer.Backend
	// Endpoint is the endpoint that was tried last, and Attempt the result of this attempt, which may still be in
	// progress. Endpoint is nil if no endpoint was tried.
	Endpoint *balancer.Endpoint
	Attempt  Attempt
}

// Served returns which Ingress, Service and endpoint serve the request, as far as this is known yet.
func (x *Exchange) Served() Served {
	s := Served{Route: cmp.Or(x.Route, x.Matched), Backend: x.Backend}
	if len(x.tried) == 0 {
		// The attempts, if there are any, are attempts of an earlier route.
		return s
	}
	s.Endpoint = x.tried[len(x.tried)-1]
	if x.open {
		s.Attempt = x.attempt()
	} else if n := len(x.attempts) - x.ofPage; n > 0 {
		s.Attempt = x.attempts[n-1]
	}
	return s
}

// Ingress returns the object that defines the route. It is the zero Ref if there is no route.
func (s *Served) Ingress() ir.Ref {
	if s.Route == nil {
		return ir.Ref{}
	}
	return s.Route.object()
}

// Service returns the name of the Service that the backend belongs to. It is empty if there is no backend.
func (s *Served) Service() string { return backendPart(s.Backend, 1) }

// Port returns the port of the Service that the backend belongs to. It is empty if there is no backend.
func (s *Served) Port() string { return backendPart(s.Backend, 2) }

// Address returns the address of the endpoint. It returns an empty string if no endpoint was tried.
func (s *Served) Address() string {
	if s.Endpoint == nil {
		return ""
	}
	return s.Endpoint.Address()
}
