package filter

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/ratelimit"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// zoneLimits rejects or delays requests of clients that exceed limits, whose counters are in zones of the
// administrator. As in nginx, request rates are checked first.
type zoneLimits struct {
	began       time.Time
	requests    []requestLimit
	connections []connectionLimit
	// tooFast is the error if a request rate is exceeded. crowded is the error if there are too many concurrent
	// requests.
	tooFast, crowded *exchange.Failure
	// dryRun and connectionsDryRun are true if the limits only count requests.
	dryRun, connectionsDryRun bool
}

// requestLimit is a compiled ir.RequestLimit.
type requestLimit struct {
	zone              *ratelimit.Requests
	key               clientKey
	bursts, undelayed ratelimit.Bursts
}

// connectionLimit is a compiled ir.ConnectionLimit.
type connectionLimit struct {
	zone *ratelimit.Connections
	key  clientKey
	max  int
}

func newZoneLimits(of ir.ZoneLimits, shared *Shared) (Filter, error) {
	h := &zoneLimits{
		began: shared.began,
		tooFast: exchange.Rejection(cmp.Or(of.Status, of.DefaultStatus, http.StatusServiceUnavailable),
			overZones("limit_req", of.Requests, func(l *ir.RequestLimit) string { return l.Zone.Name })),
		crowded: exchange.Rejection(cmp.Or(of.ConnectionsStatus, of.DefaultConnectionsStatus,
			http.StatusServiceUnavailable),
			overZones("limit_conn", of.Connections, func(l *ir.ConnectionLimit) string { return l.Zone.Name })),
		dryRun:            of.DryRun != nil && *of.DryRun,
		connectionsDryRun: of.ConnectionsDryRun != nil && *of.ConnectionsDryRun,
	}
	for i := range of.Requests {
		l, err := newRequestLimit(&of.Requests[i], shared)
		if err != nil {
			return nil, err
		}
		h.requests = append(h.requests, l)
	}
	for i := range of.Connections {
		l := &of.Connections[i]
		if l.Zone.Name == "" || l.Max <= 0 {
			return nil, errors.New("a limit of connections needs a zone, and a positive number")
		}
		key, err := newClientKey(l.Zone.Key)
		if err != nil {
			return nil, err
		}
		h.connections = append(h.connections,
			connectionLimit{shared.zones.Connections(zoneName(&l.Zone)), key, l.Max})
	}
	return h, nil
}

// overZones returns the reason to reject a request over one of these limits, for the log. name returns the name of the
// zone of a limit.
func overZones[L any](directive string, limits []L, name func(*L) string) string {
	names := make([]string, 0, len(limits))
	for i := range limits {
		names = append(names, name(&limits[i]))
	}
	return "the limit of " + directive + " is exceeded, in zone " + strings.Join(names, " or ")
}

func newRequestLimit(of *ir.RequestLimit, shared *Shared) (l requestLimit, err error) {
	z := &of.Zone
	if z.Name == "" || (z.RequestsPerSecond > 0) == (z.RequestsPerMinute > 0) || of.Burst < 0 || of.Undelayed < 0 {
		return l, errors.New("a limit of requests needs a zone with one rate, and no negative number")
	}
	l.zone = shared.zones.SizedRequests(zoneName(&z.Zone),
		ratelimit.Rates{PerSecond: z.RequestsPerSecond, PerMinute: z.RequestsPerMinute}, z.MaxClients)
	l.bursts = ratelimit.Bursts{PerSecond: of.Burst, PerMinute: of.Burst}
	l.undelayed = ratelimit.Bursts{PerSecond: of.Undelayed, PerMinute: of.Undelayed}
	l.key, err = newClientKey(z.Key)
	return l, err
}

// zoneName returns the name of a zone of the administrator in package ratelimit. It contains the key, because equal
// texts of different keys stand for different clients.
func zoneName(of *ir.Zone) string { return "/" + strconv.Quote(of.Name) + of.Key }

// Apply rejects requests over the limits with Exchange.Reject, because this is no failure, and because an error page
// can explain it.
func (h *zoneLimits) Apply(x *exchange.Exchange) (bool, error) {
	wait, ok, err := time.Duration(0), true, error(nil)
	if x.MeetsRateLimits() {
		wait, ok, err = h.count(x)
	}
	switch {
	case err != nil:
		return false, err
	case h.dryRun:
	case !ok:
		return x.Reject(h.tooFast)
	case wait > 0:
		if gone := pause(x.Context(), wait); gone != nil {
			return false, exchange.Fail(exchange.ClientGone, gone)
		}
	}
	if !x.MeetsConnectionLimits() {
		return false, nil
	}
	ok, err = h.enter(x)
	if !ok && err == nil && !h.connectionsDryRun {
		return x.RejectCrowded(h.crowded)
	}
	return false, err
}

// count counts a request for the limits of request rates, and returns how long it must wait. If it exceeds one of them,
// ok is false, and the request counts for none.
func (h *zoneLimits) count(x *exchange.Exchange) (wait time.Duration, ok bool, err error) {
	now := time.Since(h.began)
	if len(h.requests) > 1 {
		for i := range h.requests {
			l := &h.requests[i]
			key, limited, err := l.key.of(x)
			if err != nil || limited && !l.zone.Allows(key, l.bursts, now) {
				x.UseRateLimit()
				return 0, false, err
			}
		}
	}
	for i := range h.requests {
		l := &h.requests[i]
		key, limited, err := l.key.of(x)
		if err != nil {
			return 0, false, err
		}
		if !limited {
			continue
		}
		x.UseRateLimit()
		// Another request may have used up the rate in the meantime.
		longer, ok := l.zone.TakeDelayed(key, l.bursts, l.undelayed, now)
		if !ok {
			return 0, false, nil
		}
		wait = max(wait, longer)
	}
	return wait, true, nil
}

// enter counts a request for the limits of concurrent requests until it ends. If it exceeds one of them, ok is false,
// and the request counts for none.
func (h *zoneLimits) enter(x *exchange.Exchange) (ok bool, err error) {
	if len(h.connections) == 0 {
		return true, nil
	}
	keys := make([]ratelimit.Key, 0, len(h.connections))
	zones := make([]*ratelimit.Connections, 0, len(h.connections))
	leave := func() {
		for i, z := range zones {
			z.Leave(keys[i])
		}
	}
	for i := range h.connections {
		l := &h.connections[i]
		key, limited, err := l.key.of(x)
		if err == nil && !limited {
			continue
		}
		if err != nil || !l.zone.Enter(key, l.max) {
			leave()
			return false, err
		}
		keys, zones = append(keys, key), append(zones, l.zone)
	}
	if len(zones) > 0 {
		x.AtEnd(leave)
	}
	return true, nil
}
