// Package split shares requests and connections out by weight.
package split

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

// Share is one of those that a split chooses from.
type Share[T any] struct {
	To T
	// Weight is its part of the sum of all weights; less than zero is none.
	Weight int
	// Fallback gets, besides its part, what would go to shares that are empty. Of several the first counts.
	Fallback bool
}

// Split chooses one share at a time. Its methods may be called from any goroutine.
type Split[T any] struct {
	// Shares are not to be changed.
	Shares []Share[T]
	// total is the sum of the weights.
	total uint64
	// fallback may be nil.
	fallback *Share[T]
	empty    func(T) bool
	turn     atomic.Uint64
}

// New returns a split. It asks empty where there is a fallback.
func New[T any](empty func(T) bool, shares ...Share[T]) *Split[T] {
	s := &Split[T]{Shares: shares, empty: empty}
	for i := range shares {
		s.total += shares[i].weight()
		if shares[i].Fallback && s.fallback == nil {
			s.fallback = &shares[i]
		}
	}
	// The replicas of the controller should not all begin with the same share.
	s.turn.Store(rand.Uint64())
	return s
}

// Only returns a split with one share, which gets everything.
func Only[T any](to T) *Split[T] { return New(nil, Share[T]{To: to, Weight: 1}) }

// Check returns an error if Next has nothing to choose from.
func (s *Split[T]) Check() error {
	if s.total == 0 {
		return errors.New("no share of the split has a weight")
	}
	return nil
}

// golden is the golden ratio as a part of 2^64. Its multiples are spread so evenly that any number of choices in a row, or
// every second one, is shared out as the weights say, which chance alone would do for many only.
const golden = 0x9e3779b97f4a7c15

// Next chooses a share. It panics for a split that Check refuses.
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
