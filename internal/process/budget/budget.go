// Package budget implements limits for the resources of the process that clients and tenants can use: file descriptors
// and memory. Two tables divide these resources among purposes, such as connections of HTTP clients. Each purpose has a
// Budget, which is shared by owners such as namespaces or client addresses.
package budget

import (
	"math"
	"sync"
	"sync/atomic"
)

// A factor limits how much of a budget one owner, such as a namespace, may use: at most the factor times the units that
// are still free. With factor 2, a single owner gets two thirds of the budget, and two owners get two fifths each, so
// that some units always stay free for another owner. Switches use this dynamic threshold algorithm to share a buffer
// among queues (Choudhury and Hahne, 1998). largeFactor is for budgets where few owners cause nearly all of the load: a
// single owner gets eight ninths.
const (
	factor      = 2
	largeFactor = 8
)

// unlimited is the value of Budget.limit if there is no limit. It is so small that Share.Take can multiply it by
// largeFactor twice without an overflow.
const unlimited = math.MaxInt64 / (2 * largeFactor * largeFactor)

// A Budget limits how much of one resource several owners use. Its unit is a descriptor, a byte, a connection or
// something else that can be counted. It is safe for concurrent use.
type Budget struct {
	factor      int64
	limit, used atomic.Int64

	mu     sync.Mutex
	owners map[string]*owner
}

// owner counts the units that one owner of the budget uses. An owner is, for example, a namespace or a client address.
// parts contains a Share for each part of the owner, such as a port of the namespace or a connection of the client.
type owner struct {
	used  atomic.Int64
	parts map[string]*Share
}

// New returns a budget with the given number of units. A single owner can use at most two thirds of them. If limit is 0
// or less, the budget is unlimited.
func New(limit int64) *Budget { return newBudget(limit, factor) }

// NewLarge returns a budget with the given number of units. A single owner can use at most eight ninths of them. If
// limit is 0 or less, the budget is unlimited.
func NewLarge(limit int64) *Budget { return newBudget(limit, largeFactor) }

func newBudget(limit, factor int64) *Budget {
	b := &Budget{factor: factor, owners: map[string]*owner{}}
	b.SetLimit(limit)
	return b
}

// SetLimit changes the limit; 0 or less means no limit. Units that are in use stay in use, even if they exceed the new
// limit.
func (b *Budget) SetLimit(limit int64) {
	if limit <= 0 {
		limit = unlimited
	}
	b.limit.Store(limit)
}

// Limit returns the number of units in the budget, or a very large number if there is no limit.
func (b *Budget) Limit() int64 { return b.limit.Load() }

// Unlimited reports whether the budget has no limit.
func (b *Budget) Unlimited() bool { return b.Limit() == unlimited }

// Used returns the number of units that are in use.
func (b *Budget) Used() int64 { return b.used.Load() }

// Usage describes how much of a budget is in use.
type Usage struct {
	// Used and Limit are numbers of units. A Limit of 0 means no limit. Refused is the number of times that units were
	// refused; it is 0 for budgets where this is not counted.
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

// HasSpare reports whether at most half of the budget is in use.
func (b *Budget) HasSpare() bool { return b.Used() <= b.Limit()/2 }

// Take reserves n units of the budget without assigning them to an owner. The caller returns them with Give. If fewer
// than n units are free, Take reserves nothing and returns false.
func (b *Budget) Take(n int64) bool {
	if b.used.Add(n) <= b.Limit() {
		return true
	}
	b.Give(n)
	return false
}

// Give returns n units that Budget.Take has reserved.
func (b *Budget) Give(n int64) { b.used.Add(-n) }

// A Share counts the units of a budget that are reserved for one purpose of an owner: for example, for one port of a
// namespace, or for one connection of a client address.
type Share struct {
	budget *Budget
	owner  *owner
	used   atomic.Int64

	// ownerName and part identify the Share in the budget. users is the reference count of the Share: the number of
	// calls of Budget.Share without a matching Leave. users is guarded by the budget's mutex.
	ownerName, part string
	users           int
}

// Share returns the Share with the given owner and part. All callers with the same arguments get the same Share, until
// each of them has called Leave. If callers do not call Leave, the Share stays in memory as long as the budget. That is
// acceptable for namespaces, which are few, but not for client addresses.
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

// Leave decrements the reference count of the Share. If the count becomes zero, the budget deletes the Share. The
// caller must return all units that it has reserved before it calls Leave.
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

// Used returns the number of units that are reserved in this Share.
func (s *Share) Used() int64 { return s.used.Load() }

// Take reserves n units in this Share, until the caller returns them with Give. If a limit would be exceeded, Take
// reserves nothing and returns false. The owner as a whole may use at most the budget's factor times the free units of
// the budget. This Share may use at most the factor times the units that the owner may still take. If several
// goroutines call Take at the same time and there are not enough units for all of them, all of them may get false.
func (s *Share) Take(n int64) bool {
	all, own, part := s.budget.used.Add(n), s.owner.used.Add(n), s.used.Add(n)
	fair := s.budget.factor * (s.budget.Limit() - all)
	if own <= fair && part <= s.budget.factor*(fair-own) {
		return true
	}
	s.Give(n)
	return false
}

// TakeSpare is like Take, but also returns false if more than half of the budget would be in use. It is meant for units
// that the caller can do without.
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

// Give returns n units that Take or TakeSpare has reserved.
func (s *Share) Give(n int64) {
	s.used.Add(-n)
	s.owner.used.Add(-n)
	s.budget.used.Add(-n)
}
