package issuance

import (
	"slices"
	"time"

	"github.com/caddyserver/certmagic"
)

// reservedFor determines which part of certmagic's rate limit for orders is reserved for renewals: 5 means one fifth.
// Without this reserve, orders for new names could delay renewals until certificates expire.
const reservedFor = 5

// pace delays orders according to certmagic's rate limit before they start. If certmagic itself delayed an order, the
// order would count as running in the meantime, so that fewer other orders could run. begun holds the start times of
// the latest orders.
type pace struct{ begun []time.Time }

// ready reports whether another order may start now. renewal is true if the order renews a certificate. If the order
// may not start, ready returns how long to wait.
func (p *pace) ready(now time.Time, renewal bool) (time.Duration, bool) {
	p.begun = slices.DeleteFunc(p.begun,
		func(t time.Time) bool { return now.Sub(t) >= certmagic.RateLimitEventsWindow })
	limit := certmagic.RateLimitEvents
	if !renewal {
		limit -= limit / reservedFor
	}
	if certmagic.RateLimitEvents <= 0 || len(p.begun) < limit {
		return 0, true
	}
	return certmagic.RateLimitEventsWindow - now.Sub(p.begun[len(p.begun)-limit]), false
}

func (p *pace) began(now time.Time) { p.begun = append(p.begun, now) }

// refund is called if no issuer was contacted for the latest order. The order then no longer counts towards the rate
// limit.
func (p *pace) refund() {
	if len(p.begun) > 0 {
		p.begun = p.begun[:len(p.begun)-1]
	}
}
