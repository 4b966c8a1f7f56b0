// Package split distributes requests and connections among targets according to their weights.
package split

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

// Share is a target, such as a backend, with the weight that determines its share of the requests.
type Share[T any] struct {
	To T
	// Weight is proportional to the number of requests that the target gets. A negative weight means zero.
	Weight int
	// Fallback is true if this target also gets the requests for targets that are empty. If it is true for several
	// shares, only the first of them is the fallback.
	Fallback bool
}

// Split chooses one of several weighted targets for each request or connection. It is safe for concurrent use.
type Split[T any] struct {
	// Shares lists the shares. It must not be changed.
	Shares []Share[T]
	// total is the sum of the weights.
	total uint64
	// fallback is the first share with Fallback set, or nil.
	fallback *Share[T]
	empty    func(T) bool
	turn     atomic.Uint64
}

// New returns a Split for the shares. empty reports whether a target is empty, such as a backend without endpoints. It
// may be nil if Fallback is false for all shares.
func New[T any](empty func(T) bool, shares ...Share[T]) *Split[T] {
	s := &Split[T]{Shares: shares, empty: empty}
	for i := range shares {
		s.total += shares[i].weight()
		if shares[i].Fallback && s.fallback == nil {
			s.fallback = &shares[i]
		}
	}
	// Start at a random position, so that the replicas of the controller do not all start with the same share.
	s.turn.Store(rand.Uint64())
	return s
}

// Only returns a Split with a single target, which gets all requests.
func Only[T any](to T) *Split[T] { return New(nil, Share[T]{To: to, Weight: 1}) }

// Check returns an error if the sum of the weights is zero, in which case Next must not be called.
func (s *Split[T]) Check() error {
	if s.total == 0 {
		return errors.New("all weights of the split are zero")
	}
	return nil
}

// golden is 2^64 divided by the golden ratio. Its multiples, modulo 2^64, are distributed very evenly: even a few
// consecutive choices, or every second choice, match the weights. Random choices would match the weights only on
// average over many choices.
const golden = 0x9e3779b97f4a7c15

// Next returns the target for the next request or connection. It panics if Check returns an error.
func (s *Split[T]) Next() T {
	at, _ := bits.Mul64(s.turn.Add(golden), s.total)
	chosen := s.Shares
	for at >= chosen[0].weight() {
		at -= chosen[0].weight()
		chosen = chosen[1:]
	}
	if s.fallback != nil && s.empty(chosen[0].To) {
		return s.fallback.To
	}
	return chosen[0].To
}

func (s *Share[T]) weight() uint64 { return uint64(max(s.Weight, 0)) }
