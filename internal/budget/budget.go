// Package budget limits what clients and tenants can take of the process: file descriptors and memory. Two tables
// divide both among their uses, and each use divides its part among owners, such as namespaces or client addresses.
package budget

import (
	"math"
	"sync"
	"sync/atomic"
)

// The factors of budgets: an owner may hold this many times as much as is free. With the factor 2, one owner alone gets
// two thirds of the budget, two owners get two fifths each, and with any number of owners there is room for one more.
// It is the dynamic threshold of switches that share a buffer among queues (Choudhury and Hahne, 1998). No owner has to
// be known in advance, and no owner has to give anything back. The larger factor is for uses where few owners have
// nearly all of the load: one owner alone gets eight ninths.
const (
	factor      = 2
	largeFactor = 8
)

// unlimited is the limit of a budget without a limit: the rule of Share.Take multiplies it by the factor twice.
const unlimited = math.MaxInt64 / (2 * largeFactor * largeFactor)

// Budget is an amount of one resource, in descriptors or bytes. Its methods may be called from any goroutine.
type Budget struct {
	factor      int64
	limit, used atomic.Int64

	mu     sync.Mutex
	owners map[string]*owner
}

// owner is a namespace or a client address. Its parts are, for example, ports or connections.
type owner struct {
	used  atomic.Int64
	parts map[string]*Share
}

// New returns a budget of limit units in which one owner alone gets two thirds. A limit of 0 or less means no limit.
func New(limit int64) *Budget { return newBudget(limit, factor) }

// NewLarge returns a budget of limit units in which one owner alone gets eight ninths. A limit of 0 or less means no
// limit.
func NewLarge(limit int64) *Budget { return newBudget(limit, largeFactor) }

func newBudget(limit, factor int64) *Budget {
	b := &Budget{factor: factor, owners: map[string]*owner{}}
	b.SetLimit(limit)
	return b
}

// SetLimit changes the limit; 0 or less means no limit. What has been taken stays taken.
func (b *Budget) SetLimit(limit int64) {
	if limit <= 0 {
		limit = unlimited
	}
	b.limit.Store(limit)
}

// Limit returns how many units there are.
func (b *Budget) Limit() int64 { return b.limit.Load() }

// Unlimited reports whether the budget has no limit.
func (b *Budget) Unlimited() bool { return b.Limit() == unlimited }

// Used returns how many units are taken.
func (b *Budget) Used() int64 { return b.used.Load() }

// Usage is how much of a budget is taken.
type Usage struct {
	// Used and Limit are in units; a Limit of 0 means no limit. Refused counts the requests that got nothing, where
	// they are counted.
	Used, Limit, Refused int64
}

// Usage returns how much of the budget is taken at this moment.
func (b *Budget) Usage() Usage {
	u := Usage{Used: b.Used(), Limit: b.Limit()}
	if b.Unlimited() {
		u.Limit = 0
	}
	return u
}

// HasSpare reports whether at most half of the budget is taken.
func (b *Budget) HasSpare() bool { return b.Used() <= b.Limit()/2 }

// Take takes n units for no owner, until Give. It returns false, and takes none, if fewer are free.
func (b *Budget) Take(n int64) bool {
	if b.used.Add(n) <= b.Limit() {
		return true
	}
	b.Give(n)
	return false
}

// Give gives back units that Budget.Take has taken.
func (b *Budget) Give(n int64) { b.used.Add(-n) }

// Share is the account of one part of one owner, such as one port of a namespace, or one connection of a client
// address.
type Share struct {
	budget *Budget
	owner  *owner
	used   atomic.Int64

	// ownerName and part are the keys of the share. users counts the calls of Budget.Share that no Leave has followed;
	// the lock of the budget guards it.
	ownerName, part string
	users           int
}

// Share returns the account of a part of an owner. All callers that pass the same names get the same account, until
// each of them has called Leave. An account that callers never leave stays as long as the budget: that is right for
// namespaces, which are few, and wrong for client addresses.
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

// Leave ends one use of the account. After the last use the budget forgets it. The caller has given back everything
// that it took.
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

// Used returns how many units the part holds.
func (s *Share) Used() int64 { return s.used.Load() }

// Take takes n units, until Give. It returns false, and takes none, if the owner holds its fair part of the budget
// already, or the part its fair part of the owner's. If several calls at the same time do not fit together, all of them
// may return false.
func (s *Share) Take(n int64) bool {
	all, own, part := s.budget.used.Add(n), s.owner.used.Add(n), s.used.Add(n)
	fair := s.budget.factor * (s.budget.Limit() - all)
	if own <= fair && part <= s.budget.factor*(fair-own) {
		return true
	}
	s.Give(n)
	return false
}

// TakeSpare is Take for a caller that can also do without: it leaves half of the budget to others.
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

// Give gives back units that Take or TakeSpare has taken.
func (s *Share) Give(n int64) {
	s.used.Add(-n)
	s.owner.used.Add(-n)
	s.budget.used.Add(-n)
}
