// Package pools reuses memory: buffers, and values that are expensive to create. Each value has one owner at a time,
// which accesses it through a Handle and returns it to the pool with Release.
//
// Two owners of one buffer are the worst fault that a proxy can have, because one client could then read or complete
// the request of another. So builds with the race detector or the build tag poison check ownership (see Checking). In
// these builds, Release overwrites the memory. A second Release, the use of a released handle, or a write to released
// memory panics with the stack of the first Release. In other builds nothing is checked, and a handle is only a
// pointer.
//
// Release must never be deferred. After a panic, other goroutines may still use the memory, so it is left to the
// garbage collector.
package pools

import "sync"

// Pool reuses values of one type. It is created by New or NewStructs. It is safe for concurrent use.
type Pool[T any] struct {
	name string
	// create initializes a zero value. clean prepares a released value for its next owner. Both may be nil.
	create, clean func(*T)
	// poison overwrites a released value. intact reports whether a value has not been modified since its release. Both
	// are called only if Checking is true, and may be nil.
	poison func(*T)
	intact func(*T) bool
	// single is set if released values are not reused.
	single bool
	free   sync.Pool
}

// item is a pooled value, and the pool that it belongs to.
type item[T any] struct {
	owners
	pool  *Pool[T]
	value T
}

// New returns a pool of values that keep some state, such as memory, for their next owner. create initializes a zero
// value; if it is nil, the value stays zero. clean removes the data of the last owner, in all builds; it may be nil.
// name identifies the pool in the messages of panics.
func New[T any](name string, create, clean func(*T)) *Pool[T] {
	p := &Pool[T]{name: name, create: create, clean: clean}
	p.free.New = p.make
	return p
}

// NewStructs returns a pool of values that are zero when Get returns them. Release sets them to zero, so they keep no
// other memory alive.
func NewStructs[T any](name string) *Pool[T] {
	p := New(name, nil, zero[T])
	p.intact = isZero[T]
	return p
}

func zero[T any](value *T) {
	var nothing T
	*value = nothing
}

// Poison sets the function that overwrites released values in builds that check ownership. It returns the pool. It must
// be called before the first Get.
func (p *Pool[T]) Poison(fn func(*T)) *Pool[T] {
	p.poison = fn
	return p
}

// Get returns a value that the caller owns until Release. A value that is never released is left to the garbage
// collector.
func (p *Pool[T]) Get() (h Handle[T]) {
	h.item = p.free.Get().(*item[T])
	if Checking {
		h.claim = p.inspect(h.item)
	}
	return
}

// inspect panics if the value was modified after its release. Otherwise it returns the claim for the handle that is
// about to own the value.
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

// Handle owns a value of a pool. The zero Handle owns nothing. A Handle must not be copied, which go vet checks. Move
// transfers the value to another handle.
type Handle[T any] struct {
	_ noCopy
	claim
	item *item[T]
}

// noCopy makes go vet report copies of the struct that contains it.
type noCopy struct{}

// Lock does nothing.
func (*noCopy) Lock() {}

// Unlock does nothing.
func (*noCopy) Unlock() {}

// Held reports whether the handle owns a value.
func (h *Handle[T]) Held() bool { return h.item != nil && !h.ended() }

// Value returns the value that the handle owns. The result must not be used after Release.
func (h *Handle[T]) Value() *T {
	if Checking {
		h.mustOwn("was used after its release")
	}
	return &h.item.value
}

// Release returns the value to the pool. No goroutine may use the value afterwards. Release does nothing if the handle
// never owned a value.
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

// Move transfers the value to a new handle and returns the new handle. The receiver owns nothing afterwards.
func (h *Handle[T]) Move() Handle[T] {
	if Checking && h.item != nil {
		h.mustOwn("was moved after its release")
	}
	c, i := h.claim, h.item
	h.claim, h.item = claim{}, nil
	return Handle[T]{claim: c, item: i}
}

// mustOwn panics if the handle no longer owns its value.
func (h *Handle[T]) mustOwn(fault string) {
	if h.item == nil {
		panic("pools: the use of a handle that owns nothing")
	}
	if !h.item.ownedBy(h.claim) {
		h.item.panicOf(h.item.pool.name, fault)
	}
}
