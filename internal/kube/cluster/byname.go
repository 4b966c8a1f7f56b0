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
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/process/wake"
)

// byName watches individual objects of one kind, each with its own watch, so that RBAC only has to allow access to
// these objects by name. It does not use informers, because an informer for each object would need ten goroutines and a
// second copy of the object. Here a watch needs two goroutines, and up to a hundred watches share a connection.
type byName struct {
	kind   kinds.Kind
	client rest.Interface
	store  *snapshot.Store
	errors *watchErrors
	gate   *gate

	mu sync.Mutex
	// followed holds the objects that were passed to the last call of follow.
	followed shrinking.Map[ir.Ref, *single]
	// changed receives a value when objects are added to followed.
	changed wake.Signal
	// unread is the number of followed objects that have not been read yet.
	unread int
	// over is the set of objects that are not watched, because too many objects of the same namespace were passed to
	// follow.
	over map[ir.Ref]bool
}

// single is the state of one watched object.
type single struct {
	// read is set after the API server has responded for the first time: it returned the object, or the object does not
	// exist, or access to it is forbidden.
	read bool
	// stop ends the goroutine that watches the object. It is nil until the goroutine starts.
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
		gate:    &gate{slots: make(chan struct{}, atOnce), wait: shortestWait},
		changed: wake.New(),
	}, nil
}

// follow replaces the set of watched objects. It reports whether the API server has already responded for all of them.
// If it returns false, the reader of the store is notified when the last response has arrived. Objects that are no
// longer in the set are deleted from the store at once. If the set contains too many objects of one namespace, only the
// first ones by name are watched, and the others are marked as denied in the store.
func (b *byName) follow(refs iter.Seq[ir.Ref]) (read bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wanted, changed := map[ir.Ref]bool{}, false
	for ref := range refs {
		wanted[ref] = true
	}
	b.bound(wanted)
	for ref := range wanted {
		if !b.followed.Has(ref) {
			b.followed.Set(ref, &single{})
			b.unread++
			changed = true
		}
	}
	for ref, one := range b.followed.All() {
		if !wanted[ref] {
			b.forget(ref, one)
		}
	}
	if changed {
		b.changed.Send()
	}
	return b.unread == 0
}

// bound limits the number of objects per namespace. If wanted contains too many objects of a namespace, bound removes
// some of them from wanted and marks them as denied in the store.
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
	b.followed.Delete(ref)
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

// unstarted returns the followed objects for which no goroutine runs yet.
func (b *byName) unstarted() map[ir.Ref]*single {
	b.mu.Lock()
	defer b.mu.Unlock()
	unstarted := map[ir.Ref]*single{}
	for ref, one := range b.followed.All() {
		if one.stop == nil {
			unstarted[ref] = one
		}
	}
	return unstarted
}

// begin stores the function that stops the goroutine of an object. It returns false if the object is no longer
// followed.
func (b *byName) begin(ref ir.Ref, one *single, stop context.CancelFunc) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.followed.Get(ref) != one {
		return false
	}
	one.stop = stop
	return true
}

// update calls change, which puts the API server's response about an object into the store, unless the object is no
// longer followed.
func (b *byName) update(ref ir.Ref, one *single, change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.followed.Get(ref) != one {
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
