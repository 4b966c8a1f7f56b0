package filter

import (
	"errors"
	"net/netip"
	"time"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/nginx"
	"github.com/k8singress/k8singress/internal/ratelimit"
)

// rateLimit refuses clients with too many requests, and then those with too many at a time: nginx asks in this order.
type rateLimit struct {
	began time.Time
	// requests and connections are nil for any number.
	requests    *ratelimit.Requests
	connections *ratelimit.Connections
	bursts      ratelimit.Bursts
	// most is how many requests a client may have at a time.
	most int
	// status and connectionsStatus are those of the answers to clients with too many.
	status, connectionsStatus int
	// exempt is nil for no networks.
	exempt *networks
	// key is nil for the address.
	key *nginx.Template
}

var errZone = errors.New("a limit has no zone")

func newRateLimit(of ir.RateLimit, shared *Shared) (_ Filter, err error) {
	if of.Zone == "" {
		return nil, errZone
	}
	h := &rateLimit{began: shared.began, most: of.Connections, status: of.Status, connectionsStatus: of.ConnectionsStatus}
	if of.RequestsPerSecond > 0 || of.RequestsPerMinute > 0 {
		h.requests = shared.zones.Requests(of.Zone, ratelimit.Rates{PerSecond: of.RequestsPerSecond, PerMinute: of.RequestsPerMinute})
		h.bursts = ratelimit.Bursts{PerSecond: of.RequestsPerSecond * of.Burst, PerMinute: of.RequestsPerMinute * of.Burst}
	}
	if of.Connections > 0 {
		h.connections = shared.zones.Connections(of.Zone)
	}
	if len(of.Exempt) > 0 {
		if h.exempt, err = newNetworks(of.Exempt); err != nil {
			return nil, err
		}
	}
	if of.Key != "" {
		h.key, err = nginx.ParseTemplate(of.Key)
	}
	return h, err
}

// Apply answers by itself, or has an error page answer: the log has no line for each of many requests that are refused.
func (h *rateLimit) Apply(x *exchange.Exchange) (bool, error) {
	key, ok := h.keyOf(x)
	if !ok {
		return false, nil
	}
	if h.requests != nil && !h.requests.Take(key, h.bursts, time.Since(h.began)) {
		return x.Reject(h.status)
	}
	if h.connections == nil {
		return false, nil
	}
	if !h.connections.Enter(key, h.most) {
		return x.Reject(h.connectionsStatus)
	}
	x.AtEnd(func() { h.connections.Leave(key) })
	return false, nil
}

// keyOf returns what a request is counted by, and whether it is. Clients without an address, as those of a Unix socket, are one client.
func (h *rateLimit) keyOf(x *exchange.Exchange) (key ratelimit.Key, ok bool) {
	address, err := netip.ParseAddr(x.Client().IP)
	switch {
	case err == nil && h.exempt.has(address):
		return key, false
	case h.key != nil:
		text := h.key.Expand(x.Variable)
		return ratelimit.OfText(text), text != ""
	case err != nil:
		return ratelimit.OfText(""), true
	}
	return ratelimit.OfAddress(address), true
}
