package cluster

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// byName watches single objects of one kind, each with a watch for its name. This only requires RBAC rules that name
// the objects. It does not use informers: an informer for each object would need a second copy of the object and ten
// goroutines. Each watch here needs two goroutines, and shares its connection with a hundred other watches.
type byName struct {
	kind   kinds.Kind
	client rest.Interface
	store  *snapshot.Store
	errors *watchErrors
	gate   *gate

	mu sync.Mutex
	// followed has the objects of the last call of follow.
	followed map[ir.Ref]*single
	// changed receives a value when objects are added to followed.
	changed chan struct{}
	// unread is the number of followed objects that have not been read yet.
	unread int
	// over has the objects that are not watched, because their namespace has too many.
	over map[ir.Ref]bool
}

// single is the state of one watched object.
type single struct {
	// read is set after the first response of the API server: the object, that it does not exist, or that access is
	// forbidden.
	read bool
	// stop ends the goroutine that reads the object. It is nil until the goroutine starts.
	stop context.CancelFunc
}

func (f *factory) byName(name string) (*byName, error) {
	kind, ok := kinds.ByName(name)
	if !ok {
		return nil, fmt.Errorf("unknown kind %s", name)
	}
	client, err := f.client(kind.GroupVersion)
	if err != nil {
		return nil, fmt.Errorf("creating a client for %s: %w", kind.Resource, err)
	}
	return &byName{
		kind: kind, client: client, store: f.store, errors: f.errors,
		gate:     &gate{slots: make(chan struct{}, atOnce), wait: shortestWait},
		followed: map[ir.Ref]*single{}, changed: make(chan struct{}, 1),
	}, nil
}

// follow replaces the set of watched objects. It reports whether all of them have been read once. If not, the store
// wakes its reader when the last one has been read. An object that is no longer in the set is deleted from the store at
// once. If a namespace has too many objects, only the first ones by name are watched, and the others are marked as
// denied.
func (b *byName) follow(refs iter.Seq[ir.Ref]) (read bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wanted, changed := map[ir.Ref]bool{}, false
	for ref := range refs {
		wanted[ref] = true
	}
	b.bound(wanted)
	for ref := range wanted {
		if b.followed[ref] == nil {
			b.followed[ref] = &single{}
			b.unread++
			changed = true
		}
	}
	for ref, one := range b.followed {
		if !wanted[ref] {
			b.forget(ref, one)
		}
	}
	if changed {
		select {
		case b.changed <- struct{}{}:
		default:
		}
	}
	return b.unread == 0
}

// bound removes the objects that exceed the limit of their namespace from the set.
func (b *byName) bound(wanted map[ir.Ref]bool) {
	of, over := map[string]int{}, map[ir.Ref]bool{}
	for ref := range wanted {
		of[ref.Namespace]++
	}
	for namespace, n := range of {
		if n <= snapshot.MaxByName {
			continue
		}
		var names []string
		for ref := range wanted {
			if ref.Namespace == namespace {
				names = append(names, ref.Name)
			}
		}
		slices.Sort(names)
		for _, name := range names[snapshot.MaxByName:] {
			ref := ir.Ref{Kind: b.kind.Name, Namespace: namespace, Name: name}
			over[ref] = true
			delete(wanted, ref)
		}
	}
	for ref := range over {
		delete(b.over, ref)
	}
	b.store.DenyAll(maps.Keys(b.over), false)
	b.over = over
	b.store.DenyAll(maps.Keys(over), true)
}

func (b *byName) forget(ref ir.Ref, one *single) {
	delete(b.followed, ref)
	if !one.read {
		b.unread--
	}
	if one.stop != nil {
		one.stop()
	}
	b.store.Delete(b.kind.Named(ref.Namespace, ref.Name))
	b.store.Deny(ref, false)
}

// run watches the objects until the context ends.
func (b *byName) run(ctx context.Context) {
	var running panics.Group
	defer running.Wait()
	for {
		for ref, one := range b.unstarted() {
			watching, stop := context.WithCancel(ctx)
			if !b.begin(ref, one, stop) {
				stop()
				continue
			}
			running.Go("cluster/secret", func() {
				defer stop()
				newReader(b, ref, one).run(watching)
			})
		}
		select {
		case <-b.changed:
		case <-ctx.Done():
			return
		}
	}
}

// unstarted returns the objects that no goroutine reads yet.
func (b *byName) unstarted() map[ir.Ref]*single {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := maps.Clone(b.followed)
	maps.DeleteFunc(all, func(_ ir.Ref, one *single) bool { return one.stop != nil })
	return all
}

// begin records the function that stops the goroutine of an object. It returns false if the object is no longer
// watched.
func (b *byName) begin(ref ir.Ref, one *single, stop context.CancelFunc) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.followed[ref] != one {
		return false
	}
	one.stop = stop
	return true
}

// update calls change, which updates the store after a response about an object. It does nothing if the object is no
// longer watched.
func (b *byName) update(ref ir.Ref, one *single, change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.followed[ref] != one {
		return
	}
	change()
	if one.read {
		return
	}
	one.read = true
	if b.unread--; b.unread == 0 {
		b.store.Wake()
	}
}
