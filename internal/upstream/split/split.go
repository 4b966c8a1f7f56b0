// Package split divides requests and connections by weight.
package split

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

// Share is one of the targets of a split.
type Share[T any] struct {
	To T
	// Weight is the share's part of the sum of all weights. A negative weight means zero.
	Weight int
	// Fallback means that the share also gets the requests for shares that are empty. If several shares have it set,
	// the first is used.
	Fallback bool
}

// Split chooses one share at a time. Its methods may be called from any goroutine.
type Split[T any] struct {
	// Shares must not be changed.
	Shares []Share[T]
	// total is the sum of the weights.
	total uint64
	// fallback is the share with Fallback set, or nil.
	fallback *Share[T]
	empty    func(T) bool
	turn     atomic.Uint64
}

// New returns a split of the shares. empty reports whether a target is empty. It may be nil if no share is a fallback.
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

// Only returns a split with a single share.
func Only[T any](to T) *Split[T] { return New(nil, Share[T]{To: to, Weight: 1}) }

// Check returns an error if no share has a weight, so that Next cannot choose one.
func (s *Split[T]) Check() error {
	if s.total == 0 {
		return errors.New("all weights of the split are zero")
	}
	return nil
}

// golden is 2^64 divided by the golden ratio. Its multiples are spread so evenly that even short runs of choices, and
// every second choice, match the weights. Random choices would match them only in large numbers.
const golden = 0x9e3779b97f4a7c15

// Next chooses a share. It panics if Check returns an error.
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
