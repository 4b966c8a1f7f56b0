package kubestorage

import (
	"bytes"
	"context"
	"strings"
	"sync"

	"github.com/tidwall/btree"
)

// index is what is known of the Secrets: what the API server tells, and what this process wrote and is not told of yet.
// Both together are the newest state that anybody here has seen.
type index struct {
	// told is called with the keys that have changed, outside of the lock.
	told func(keys []string)

	mu sync.RWMutex
	// listed are the records by name, as of version.
	listed  map[string]*record
	version string
	// ahead are records that are newer than that.
	ahead map[string]lead
	// wrote is the greatest version that this process has made.
	wrote string
	// advanced is closed when version changes; without it, nobody waits for that.
	advanced chan struct{}
	// items are the values of all of these by key.
	items btree.Map[string, item]
}

// lead is a record that the API server has, or had: gone says that the Secret was deleted, in this state or a later one.
type lead struct {
	*record
	gone bool
}

func newIndex(told func([]string)) *index {
	return &index{told: told, listed: map[string]*record{}, ahead: map[string]lead{}}
}

// record returns the newest known state of a Secret, or nil if there is none.
func (x *index) record(name string) *record {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.current(name)
}

func (x *index) current(name string) *record {
	l, ok := x.ahead[name]
	switch {
	case !ok:
		return x.listed[name]
	case l.gone:
		return nil
	}
	return l.record
}

// learn takes an answer of the API server to a question about one object.
func (x *index) learn(r *record) { x.lead(lead{r, false}) }

// write takes an answer of the API server to a write.
func (x *index) write(r *record) {
	x.learn(r)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.wrote == "" || newer(r.version(), x.wrote) {
		x.wrote = r.version()
	}
}

// forget takes the answer that a Secret is gone, which once was in this state.
func (x *index) forget(r *record) { x.lead(lead{r, true}) }

func (x *index) lead(l lead) {
	name := l.secret.Name
	x.change([]string{name}, func() {
		known, ok := x.ahead[name]
		switch {
		case ok && (newer(known.version(), l.version()) || known.gone && !l.gone && known.same(l.record)):
			// What is known is newer.
		case x.version == "" || newer(l.version(), x.version):
			x.ahead[name] = l
		case l.gone && x.listed[name] != nil && x.listed[name].same(l.record):
			x.ahead[name] = l
		}
	})
}

// see takes an added or changed Secret, in the order of their versions.
func (x *index) see(r *record) {
	name := r.secret.Name
	x.change([]string{name}, func() {
		x.listed[name] = r
		x.reach(r.version())
		x.settle(name)
	})
}

// miss takes a deleted Secret, with the version of its deletion.
func (x *index) miss(name, version string) {
	x.change([]string{name}, func() {
		delete(x.listed, name)
		x.reach(version)
		x.settle(name)
	})
}

// replace takes all Secrets as of a version.
func (x *index) replace(all map[string]*record, version string) {
	x.mu.RLock()
	var names []string
	for name := range x.listed {
		names = append(names, name)
	}
	for name := range x.ahead {
		names = append(names, name)
	}
	x.mu.RUnlock()
	for name := range all {
		names = append(names, name)
	}
	x.change(names, func() {
		x.listed = all
		x.version = ""
		x.reach(version)
		for name := range x.ahead {
			x.settle(name)
		}
	})
}

func (x *index) reach(version string) {
	if x.version != "" && !newer(version, x.version) {
		return
	}
	x.version = version
	if x.advanced != nil {
		close(x.advanced)
		x.advanced = nil
	}
}

// await waits until all is known that was written up to a version.
func (x *index) await(ctx context.Context, version string) error {
	for {
		x.mu.Lock()
		if x.version != "" && !newer(version, x.version) {
			x.mu.Unlock()
			return nil
		}
		if x.advanced == nil {
			x.advanced = make(chan struct{})
		}
		advanced := x.advanced
		x.mu.Unlock()
		select {
		case <-advanced:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// written is the version of the newest Secret that this process wrote, or the empty string.
func (x *index) written() string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.wrote
}

// settle drops what is ahead of the API server's news no longer. A deletion has no version of its own: it is ahead as
// long as the Secret is listed, or may still be.
func (x *index) settle(name string) {
	l, ok := x.ahead[name]
	if !ok || newer(l.version(), x.version) {
		return
	}
	if listed := x.listed[name]; l.gone && listed != nil && listed.same(l.record) {
		return
	}
	delete(x.ahead, name)
}

// change calls a function that changes the records of some names, and brings the items up to date.
func (x *index) change(names []string, do func()) {
	x.mu.Lock()
	before := make([]*record, len(names))
	for i, name := range names {
		before[i] = x.current(name)
	}
	do()
	var keys []string
	for i, name := range names {
		keys = x.swap(before[i], x.current(name), keys)
	}
	x.mu.Unlock()
	if len(keys) > 0 {
		x.told(keys)
	}
}

// swap appends the keys whose values are others.
func (x *index) swap(before, after *record, keys []string) []string {
	if before == after {
		return keys
	}
	var old, items map[string]item
	if before != nil {
		old = before.items
	}
	if after != nil {
		items = after.items
	}
	for key := range old {
		if _, ok := items[key]; !ok {
			x.items.Delete(key)
			keys = append(keys, key)
		}
	}
	for key, i := range items {
		x.items.Set(key, i)
		if known, ok := old[key]; !ok || !bytes.Equal(known.value, i.value) {
			keys = append(keys, key)
		}
	}
	return keys
}

// item returns the value of a key.
func (x *index) item(key string) (item, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.items.Get(key)
}

// folder says whether there are keys below this one.
func (x *index) folder(key string) bool {
	found := false
	x.below(key, func(string) (skip string) {
		found = true
		return stop
	})
	return found
}

// stop ends below. No key is like it.
const stop = "\xff"

// below calls a function with each key below another one, in order, until it returns stop. It may return a later key to
// go on from; the empty string is the next one.
func (x *index) below(folder string, each func(key string) (skip string)) {
	prefix := folder + "/"
	if folder == "" {
		prefix = ""
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	for at := prefix; ; {
		skip := stop
		x.items.Ascend(at, func(key string, _ item) bool {
			if !strings.HasPrefix(key, prefix) {
				return false
			}
			skip = each(key)
			return skip == ""
		})
		if skip == stop || skip == "" {
			return
		}
		at = skip
	}
}
