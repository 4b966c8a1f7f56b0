package issuance

import (
	"slices"
	"time"

	"github.com/caddyserver/certmagic"
)

// reservedFor is the part of the pace, as one of so many, that is kept for renewals: who orders new names all the time is not to let
// the certificates of others expire.
const reservedFor = 5

// pace keeps to the number of orders that certmagic allows one certificate authority in a short time. A host that had to
// wait there would keep another host from its turn.
type pace struct{ begun []time.Time }

// ready returns whether another order may begin, which is a renewal or not, and if not, how long that takes.
func (p *pace) ready(now time.Time, renewal bool) (time.Duration, bool) {
	p.begun = slices.DeleteFunc(p.begun, func(t time.Time) bool { return now.Sub(t) >= certmagic.RateLimitEventsWindow })
	most := certmagic.RateLimitEvents
	if !renewal {
		most -= most / reservedFor
	}
	if certmagic.RateLimitEvents <= 0 || len(p.begun) < most {
		return 0, true
	}
	return certmagic.RateLimitEventsWindow - now.Sub(p.begun[len(p.begun)-most]), false
}

func (p *pace) began(now time.Time) { p.begun = append(p.begun, now) }

// refund takes back the last beginning, because no issuer was asked.
func (p *pace) refund() {
	if len(p.begun) > 0 {
		p.begun = p.begun[:len(p.begun)-1]
	}
}
