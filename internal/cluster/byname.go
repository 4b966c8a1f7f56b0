package cluster

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// byName follows single objects of one kind, each by a watch for its name alone. Rights that name the objects are enough
// for that. An informer for each would keep a second copy, and ten goroutines; a watch here has two, and shares its
// connection with a hundred others.
type byName struct {
	kind   kinds.Kind
	client rest.Interface
	store  *snapshot.Store
	errors *watchErrors
	gate   *gate

	mu sync.Mutex
	// followed are the objects that follow was called with.
	followed map[ir.Ref]*single
	// changed receives when followed did.
	changed chan struct{}
	// unread counts the followed objects that have not been read.
	unread int
	// over are those that are not followed, because their namespace has too many.
	over map[ir.Ref]bool
}

// single is one object that is followed.
type single struct {
	// read says that the API server has answered: with the object, that it does not exist, or that reading it is forbidden.
	read bool
	// stop ends the goroutine that reads the object. It is nil before there is one.
	stop context.CancelFunc
}

func (f *factory) byName(name string) (*byName, error) {
	kind, ok := kinds.ByName(name)
	if !ok {
		return nil, fmt.Errorf("unknown kind %s", name)
	}
	client, err := f.client(kind.GroupVersion)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", kind.Resource, err)
	}
	return &byName{
		kind: kind, client: client, store: f.store, errors: f.errors, gate: &gate{slots: make(chan struct{}, atOnce), wait: shortestWait},
		followed: map[ir.Ref]*single{}, changed: make(chan struct{}, 1),
	}, nil
}

// follow replaces the set of objects that are followed, and says whether all of them have been read once. The store wakes
// its reader when the last one has been. An object that is no longer followed is deleted from the store at once. Of those that are too
// many for a namespace, the first by name are followed, and the others count as objects that may not be read.
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

// bound takes those out of a set that are too many for their namespace.
func (b *byName) bound(wanted map[ir.Ref]bool) {
	of, over := map[string]int{}, map[ir.Ref]bool{}
	for ref := range wanted {
		of[ref.Namespace]++
	}
	for namespace, n := range of {
		if n <= snapshot.MostByName {
			continue
		}
		var names []string
		for ref := range wanted {
			if ref.Namespace == namespace {
				names = append(names, ref.Name)
			}
		}
		slices.Sort(names)
		for _, name := range names[snapshot.MostByName:] {
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

// run follows the objects until the context ends.
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

// unstarted are the objects that no goroutine reads yet.
func (b *byName) unstarted() map[ir.Ref]*single {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := maps.Clone(b.followed)
	maps.DeleteFunc(all, func(_ ir.Ref, one *single) bool { return one.stop != nil })
	return all
}

// begin notes the goroutine that reads an object, unless the object is no longer followed.
func (b *byName) begin(ref ir.Ref, one *single, stop context.CancelFunc) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.followed[ref] != one {
		return false
	}
	one.stop = stop
	return true
}

// update changes the store after an answer about an object, unless the object is no longer followed.
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
