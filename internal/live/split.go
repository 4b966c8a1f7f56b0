package live

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/document"
)

// split shares the requests of a route out by weight.
type split struct {
	shares []share
	// total is the sum of the weights.
	total uint64
	// fallback gets the requests for backends without endpoints; it may be nil.
	fallback *destination
	turn     atomic.Uint64
}

// share is a destination, and where its part of the total ends.
type share struct {
	destination
	upTo uint64
}

// newSplit is for a document with more than one share. Weights less than zero are none.
func newSplit(shares []*document.Share, to func(*document.Destination) destination) *split {
	s := &split{shares: make([]share, len(shares))}
	for i, d := range shares {
		s.total += uint64(max(d.Weight, 0))
		s.shares[i] = share{to(&d.Destination), s.total}
		if d.Fallback && s.fallback == nil {
			s.fallback = &s.shares[i].destination
		}
	}
	// The replicas of the controller should not all begin with the same share.
	s.turn.Store(rand.Uint64())
	return s
}

// golden is the golden ratio as a part of 2^64. Its multiples are spread so evenly that any number of requests in a row, or
// every second one, is shared out as the weights say, which chance alone would do for many only.
const golden = 0x9e3779b97f4a7c15

// next chooses a destination; it is nil if no share has a weight.
func (s *split) next() *destination {
	at, _ := bits.Mul64(s.turn.Add(golden), s.total)
	for i := range s.shares {
		if at < s.shares[i].upTo {
			return s.instead(&s.shares[i].destination)
		}
	}
	return s.fallback
}

func (s *split) instead(d *destination) *destination {
	if s.fallback != nil && d.backend != nil && len(d.backend.Endpoints()) == 0 {
		return s.fallback
	}
	return d
}

// to chooses the destination of a request. A split without weights is refused when it is added, so there is one.
func (r *Route) to() *destination {
	if r.split == nil {
		return &r.destination
	}
	return r.split.next()
}

// destinations yields all of a route.
func (r *Route) destinations(yield func(*destination) bool) {
	if r.split == nil {
		yield(&r.destination)
		return
	}
	for i := range r.split.shares {
		if !yield(&r.split.shares[i].destination) {
			return
		}
	}
}

// admits is the same for routes that let in the same clients.
func (r *Route) admits() string {
	if r.split == nil {
		return r.access
	}
	all := ""
	for d := range r.destinations {
		if d.access != r.split.shares[0].access {
			all += "," + d.access
		}
	}
	return r.split.shares[0].access + all
}

// refused returns why the first of the destinations that answers 503 does so, or nil.
func (r *Route) refused() error {
	for d := range r.destinations {
		if d.chain.refused != nil {
			return d.chain.refused
		}
	}
	return nil
}
