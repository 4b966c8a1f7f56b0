// Package pools reuses memory: buffers, and values that cost something to make. Each piece has one owner at a time. The owner holds it by a
// Handle, and gives it back by Release.
//
// Two owners of one buffer are the worst fault that a proxy can have: one client reads or completes the request of another one. So builds
// with the race detector or with the tag poison check the owners (see Checking): Release overwrites the memory, and a second Release, the
// use of a released handle, or a write to released memory panics, with the stack of the first Release. Other builds check nothing, and a
// handle is a pointer there.
//
// Release is never deferred: after a panic, other goroutines may still use the memory, so it is left to the garbage collector.
package pools

import "sync"

// Pool reuses values of one type. New and NewStructs return one. Its methods may be called from any goroutine.
type Pool[T any] struct {
	name string
	// create fills a zero value, and clean prepares a released one for its next owner. Both may be nil.
	create, clean func(*T)
	// poison overwrites a released value, and intact reports whether nothing was written to it since. They are nil if only clean does so,
	// and are called while Checking is true.
	poison func(*T)
	intact func(*T) bool
	// single is set if released values are not used again.
	single bool
	free   sync.Pool
}

// item is a value with its pool.
type item[T any] struct {
	owners
	pool  *Pool[T]
	value T
}

// New returns a pool of values that keep something for their next owner. create fills a zero value; nil leaves it zero. clean drops what
// the last owner has left, in all builds. Its name tells readers of a panic which memory was misused.
func New[T any](name string, create, clean func(*T)) *Pool[T] {
	p := &Pool[T]{name: name, create: create, clean: clean}
	p.free.New = p.make
	return p
}

// NewStructs returns a pool of values that begin as zero. Release zeroes them, so they keep nothing alive.
func NewStructs[T any](name string) *Pool[T] {
	p := New(name, nil, zero[T])
	p.intact = isZero[T]
	return p
}

func zero[T any](value *T) {
	var nothing T
	*value = nothing
}

// Poison has released values overwritten by fn in builds that check. It returns the pool, and is called before the first Get.
func (p *Pool[T]) Poison(fn func(*T)) *Pool[T] {
	p.poison = fn
	return p
}

// Get returns a value that the caller owns until Release. Without Release it is left to the garbage collector.
func (p *Pool[T]) Get() (h Handle[T]) {
	h.item = p.free.Get().(*item[T])
	if Checking {
		h.claim = p.inspect(h.item)
	}
	return
}

// inspect returns the claim to a value. It panics if the value was written to since its release.
func (p *Pool[T]) inspect(i *item[T]) claim {
	if p.intact != nil && !p.intact(&i.value) {
		i.panicOf(p.name, "was written to after its release")
	}
	return i.taken()
}

func (p *Pool[T]) make() any {
	i := &item[T]{pool: p}
	if p.create != nil {
		p.create(&i.value)
	}
	return i
}

// Handle owns a value of a pool. The zero Handle owns nothing. Handles are not copied, which go vet checks: Move passes the value on.
type Handle[T any] struct {
	_ noCopy
	claim
	item *item[T]
}

// noCopy lets go vet report copies.
type noCopy struct{}

// Lock does nothing.
func (*noCopy) Lock() {}

// Unlock does nothing.
func (*noCopy) Unlock() {}

// Held reports whether the handle owns a value.
func (h *Handle[T]) Held() bool { return h.item != nil && !h.ended() }

// Value returns the value. It may be used until Release.
func (h *Handle[T]) Value() *T {
	if Checking {
		h.mustOwn("was used after its release")
	}
	return &h.item.value
}

// Release gives the value back. Nothing may use it any more, in any goroutine. It does nothing if the handle never owned a value.
func (h *Handle[T]) Release() {
	i := h.item
	if i == nil {
		return
	}
	if Checking {
		h.mustOwn("was released a second time")
		if !i.released(h.claim) {
			i.panicOf(i.pool.name, "was released by two owners at once")
		}
		h.end()
	} else {
		h.item = nil
	}
	i.pool.put(i)
}

func (p *Pool[T]) put(i *item[T]) {
	if p.clean != nil {
		p.clean(&i.value)
	}
	if Checking && p.poison != nil {
		p.poison(&i.value)
	}
	if !p.single {
		p.free.Put(i)
	}
}

// Move returns the value under another handle. This one owns nothing afterwards.
func (h *Handle[T]) Move() Handle[T] {
	if Checking && h.item != nil {
		h.mustOwn("was moved after its release")
	}
	c, i := h.claim, h.item
	h.claim, h.item = claim{}, nil
	return Handle[T]{claim: c, item: i}
}

// mustOwn panics if the handle does not own its value any more.
func (h *Handle[T]) mustOwn(fault string) {
	if h.item == nil {
		panic("pools: the use of a handle that owns nothing")
	}
	if !h.item.ownedBy(h.claim) {
		h.item.panicOf(h.item.pool.name, fault)
	}
}
