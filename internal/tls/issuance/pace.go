package issuance

import (
	"slices"
	"time"

	"github.com/caddyserver/certmagic"
)

// reservedFor is the share of the rate limit that is reserved for renewals, as a divisor: 5 reserves a fifth. Orders
// for new names must not let existing certificates expire.
const reservedFor = 5

// pace applies certmagic's rate limit for orders from one certificate authority before a host gets its turn. A host
// that waited inside certmagic would hold a slot that another host could use.
type pace struct{ begun []time.Time }

// ready reports whether another order, or renewal, may start now. If not, it returns how long to wait.
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

// refund removes the last start, because no issuer was contacted.
func (p *pace) refund() {
	if len(p.begun) > 0 {
		p.begun = p.begun[:len(p.begun)-1]
	}
}
