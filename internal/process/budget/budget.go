// Package budget limits the resources of the process that clients and tenants can use: file descriptors and memory. Two
// tables divide each resource among its uses. Each use has a budget that its owners share, such as namespaces or client
// addresses.
package budget

import (
	"math"
	"sync"
	"sync/atomic"
)

// The factor of a budget limits an owner to this many times the units that are still free. With factor 2, a single
// owner gets two thirds of the budget, two owners get two fifths each, and with any number of owners there is room for
// one more. This is the dynamic threshold algorithm of switches that share a buffer among queues (Choudhury and Hahne,
// 1998). It does not need to know the owners in advance, and no owner has to give anything back. The larger factor is
// for uses where few owners cause nearly all of the load: a single owner gets eight ninths.
const (
	factor      = 2
	largeFactor = 8
)

// unlimited is the limit of a budget without a limit. It leaves room for Share.Take, which multiplies it by the factor
// twice.
const unlimited = math.MaxInt64 / (2 * largeFactor * largeFactor)

// Budget is an amount of one resource that owners share. Its unit is a descriptor, a byte, a connection or another
// thing that is counted. Its methods may be called from any goroutine.
type Budget struct {
	factor      int64
	limit, used atomic.Int64

	mu     sync.Mutex
	owners map[string]*owner
}

// owner holds the usage of one owner, such as a namespace or a client address. Its parts are, for example, ports or
// connections.
type owner struct {
	used  atomic.Int64
	parts map[string]*Share
}

// New returns a budget of limit units in which a single owner gets two thirds. A limit of 0 or less means no limit.
func New(limit int64) *Budget { return newBudget(limit, factor) }

// NewLarge returns a budget of limit units in which a single owner gets eight ninths. A limit of 0 or less means no
// limit.
func NewLarge(limit int64) *Budget { return newBudget(limit, largeFactor) }

func newBudget(limit, factor int64) *Budget {
	b := &Budget{factor: factor, owners: map[string]*owner{}}
	b.SetLimit(limit)
	return b
}

// SetLimit changes the limit; 0 or less means no limit. Units that have been taken stay taken.
func (b *Budget) SetLimit(limit int64) {
	if limit <= 0 {
		limit = unlimited
	}
	b.limit.Store(limit)
}

// Limit returns the number of units in the budget.
func (b *Budget) Limit() int64 { return b.limit.Load() }

// Unlimited reports whether the budget has no limit.
func (b *Budget) Unlimited() bool { return b.Limit() == unlimited }

// Used returns the number of units that are taken.
func (b *Budget) Used() int64 { return b.used.Load() }

// Usage is the current usage of a budget.
type Usage struct {
	// Used and Limit are numbers of units. A Limit of 0 means no limit. Refused is the number of requests that got no
	// units, where these are counted.
	Used, Limit, Refused int64
}

// Usage returns the current usage.
func (b *Budget) Usage() Usage {
	u := Usage{Used: b.Used(), Limit: b.Limit()}
	if b.Unlimited() {
		u.Limit = 0
	}
	return u
}

// HasSpare reports whether at most half of the budget is taken.
func (b *Budget) HasSpare() bool { return b.Used() <= b.Limit()/2 }

// Take takes n units without an owner, until Give. If fewer than n units are free, it takes nothing and returns false.
func (b *Budget) Take(n int64) bool {
	if b.used.Add(n) <= b.Limit() {
		return true
	}
	b.Give(n)
	return false
}

// Give returns units that Budget.Take has taken.
func (b *Budget) Give(n int64) { b.used.Add(-n) }

// Share is the account of one part of one owner, such as a port of a namespace or a connection of a client address.
type Share struct {
	budget *Budget
	owner  *owner
	used   atomic.Int64

	// ownerName and part are the keys of the share. users is the number of calls of Budget.Share without a matching
	// Leave. The lock of the budget guards it.
	ownerName, part string
	users           int
}

// Share returns the account of a part of an owner. All callers that pass the same names get the same account until each
// of them has called Leave. An account that is never left stays as long as the budget. That is acceptable for
// namespaces, which are few, but not for client addresses.
func (b *Budget) Share(ownerName, part string) *Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.owners[ownerName]
	if o == nil {
		o = &owner{parts: map[string]*Share{}}
		b.owners[ownerName] = o
	}
	s := o.parts[part]
	if s == nil {
		s = &Share{budget: b, owner: o, ownerName: ownerName, part: part}
		o.parts[part] = s
	}
	s.users++
	return s
}

// Leave ends one use of the account. After the last use the budget forgets the account. The caller must have given back
// everything that it took.
func (s *Share) Leave() {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	if delete(s.owner.parts, s.part); len(s.owner.parts) == 0 {
		delete(b.owners, s.ownerName)
	}
}

// Used returns the number of units that the part has taken.
func (s *Share) Used() int64 { return s.used.Load() }

// Take takes n units until Give. If this would exceed the owner's fair part of the budget, or the part's fair part of
// the owner's, it takes nothing and returns false. If concurrent calls do not all fit, all of them may return false.
func (s *Share) Take(n int64) bool {
	all, own, part := s.budget.used.Add(n), s.owner.used.Add(n), s.used.Add(n)
	fair := s.budget.factor * (s.budget.Limit() - all)
	if own <= fair && part <= s.budget.factor*(fair-own) {
		return true
	}
	s.Give(n)
	return false
}

// TakeSpare is like Take for optional uses: it leaves half of the budget to others.
func (s *Share) TakeSpare(n int64) bool {
	if !s.Take(n) {
		return false
	}
	if s.budget.HasSpare() {
		return true
	}
	s.Give(n)
	return false
}

// Give returns units that Take or TakeSpare has taken.
func (s *Share) Give(n int64) {
	s.used.Add(-n)
	s.owner.used.Add(-n)
	s.budget.used.Add(-n)
}
