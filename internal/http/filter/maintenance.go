package filter

import (
	"net/http"
	"net/netip"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// maintenance rejects all clients except those in the networks of allow.
type maintenance struct{ allow *networks }

func newMaintenance(of ir.Maintenance) (Filter, error) {
	allow, err := newNetworks(of.Allow)
	if err != nil {
		return nil, err
	}
	return &maintenance{allow}, nil
}

var errMaintenance = exchange.Rejection(http.StatusServiceUnavailable,
	"the Ingress is in maintenance, and the client's address is not exempt")

// Apply rejects clients that are not allowed with Exchange.Reject, because every client of a closed Ingress causes such
// a response, and because an error page can explain it. A client without an IP address is always rejected.
func (h *maintenance) Apply(x *exchange.Exchange) (bool, error) {
	ip, err := netip.ParseAddr(x.Client().IP)
	if err != nil || !h.allow.has(ip) {
		return x.Reject(errMaintenance)
	}
	return false, nil
}
