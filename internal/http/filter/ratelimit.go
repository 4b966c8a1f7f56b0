package filter

import (
	"errors"
	"net/netip"
	"strconv"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/ratelimit"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// rateLimit rejects requests of clients that exceed a request rate or a number of concurrent requests. As in nginx, the
// rate is checked first.
type rateLimit struct {
	began time.Time
	// requests is nil if the request rate is not limited. connections is nil if the number of concurrent requests is
	// not limited.
	requests    *ratelimit.Requests
	connections *ratelimit.Connections
	bursts      ratelimit.Bursts
	// maxConnections is the maximum number of concurrent requests of a client.
	maxConnections int
	// tooFast is the error if the request rate is exceeded. crowded is the error if there are too many concurrent
	// requests.
	tooFast, crowded *exchange.Failure
	// exempt contains the client networks that are not limited. It may be nil.
	exempt *networks
	key    clientKey
}

var errZone = errors.New("the rate limit has no zone")

func newRateLimit(of ir.RateLimit, shared *Shared) (_ Filter, err error) {
	if of.Zone == "" {
		return nil, errZone
	}
	h := &rateLimit{began: shared.began, maxConnections: of.Connections,
		tooFast: exchange.Rejection(of.Status, overLimit(of.RequestsPerSecond, of.RequestsPerMinute)),
		crowded: exchange.Rejection(of.ConnectionsStatus, overConnections(of.Connections))}
	if of.RequestsPerSecond > 0 || of.RequestsPerMinute > 0 {
		h.requests = shared.zones.Requests(of.Zone,
			ratelimit.Rates{PerSecond: of.RequestsPerSecond, PerMinute: of.RequestsPerMinute})
		h.bursts = ratelimit.Bursts{PerSecond: of.RequestsPerSecond * of.Burst,
			PerMinute: of.RequestsPerMinute * of.Burst}
	}
	if of.Connections > 0 {
		h.connections = shared.zones.Connections(of.Zone)
	}
	if len(of.Exempt) > 0 {
		if h.exempt, err = newNetworks(of.Exempt); err != nil {
			return nil, err
		}
	}
	h.key, err = newClientKey(of.Key)
	return h, err
}

// overLimit returns the reason to reject a request over a rate, for the log. A rate that is zero is no limit.
func overLimit(perSecond, perMinute int) string {
	second, minute := strconv.Itoa(perSecond)+" requests per second", strconv.Itoa(perMinute)+" requests per minute"
	switch {
	case perMinute == 0:
		return "the limit of " + second + " is exceeded"
	case perSecond == 0:
		return "the limit of " + minute + " is exceeded"
	}
	return "the limit of " + second + " or of " + minute + " is exceeded"
}

// overConnections returns the reason to reject a request of a client that has too many concurrent requests.
func overConnections(limit int) string {
	return "the limit of " + strconv.Itoa(limit) + " concurrent requests is exceeded"
}

// Apply rejects requests over the limits with Exchange.Reject, because this is no failure, and because an error page
// can explain it.
func (h *rateLimit) Apply(x *exchange.Exchange) (bool, error) {
	if h.exempts(x) {
		return false, nil
	}
	key, limited, err := h.key.of(x)
	if !limited || err != nil {
		return false, err
	}
	if h.requests != nil && x.MeetsRateLimits() {
		x.UseRateLimit()
		if !h.requests.Take(key, h.bursts, time.Since(h.began)) {
			return x.Reject(h.tooFast)
		}
	}
	if h.connections == nil || !x.MeetsConnectionLimits() {
		return false, nil
	}
	if !h.connections.Enter(key, h.maxConnections) {
		return x.RejectCrowded(h.crowded)
	}
	x.AtEnd(func() { h.connections.Leave(key) })
	return false, nil
}

// exempts reports whether the client of a request is not limited, because of its address.
func (h *rateLimit) exempts(x *exchange.Exchange) bool {
	if h.exempt == nil {
		return false
	}
	address, err := netip.ParseAddr(x.Client().IP)
	return err == nil && h.exempt.has(address)
}
