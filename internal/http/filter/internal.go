package filter

import (
	"net/http"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// internal rejects requests of clients for a location that only rewrites and error pages lead to.
type internal struct{ ir.Internal }

func newInternal(of ir.Internal) (Filter, error) { return &internal{of}, nil }

var errInternal = exchange.Rejection(http.StatusNotFound,
	"the location is internal: only rewrites and error pages lead to it")

// Apply responds with 404, unless a route of the same namespace has passed the request on.
func (h *internal) Apply(x *exchange.Exchange) (bool, error) {
	if x.From != "" && (h.Everywhere || x.From == ir.ParseRef(x.Route.Origin).Namespace) {
		return false, nil
	}
	return x.Reject(errInternal)
}
