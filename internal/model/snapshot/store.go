package snapshot

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
)

// A Store tracks objects as they are added, changed and deleted. It is safe for concurrent use. Objects of kinds that
// are not in internal/model/kinds are ignored.
//
// Some updates do not count as changes: updates that only change the resourceVersion, the managed fields, or a status
// that this controller writes. After such an update, Take returns the newest object, but the channel Store.Changed
// receives nothing, and Snapshot.Changed does not list the object.
type Store struct {
	mu     sync.Mutex
	tables map[string]*table
	// taken is the last snapshot that Take returned, without its list Changed. The next snapshot shares its maps, so
	// they must not be modified.
	taken   Snapshot
	changed map[ir.Ref]struct{}
	wake    chan struct{}
}

// NewStore returns an empty store.
func NewStore() *Store {
	s := &Store{
		tables: map[string]*table{}, taken: Snapshot{tables: map[string]*table{}},
		changed: map[ir.Ref]struct{}{}, wake: make(chan struct{}, 1),
	}
	for i := range kinds.All {
		row := &kinds.All[i]
		s.tables[row.Name], s.taken.tables[row.Name] = &table{row: row}, &table{row: row}
	}
	return s
}

// Set adds or replaces an object. The caller must not modify the object afterwards.
func (s *Store) Set(object kinds.Object) { s.Apply([]kinds.Object{object}, nil) }

// Delete removes an object. It does nothing if the object does not exist. Only the kind, namespace and name of the
// argument are used.
func (s *Store) Delete(object kinds.Object) { s.Apply(nil, []kinds.Object{object}) }

// Apply removes the objects in gone and adds or replaces the objects in set. It is atomic: no snapshot contains only a
// part of the changes.
func (s *Store) Apply(set, gone []kinds.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range gone {
		if t := s.table(object); t != nil {
			s.record(t, t.remove(object))
		}
	}
	for _, object := range set {
		t := s.table(object)
		if t == nil {
			continue
		}
		if old := t.set(object); old == nil || !t.same(old, object) {
			s.record(t, old)
			s.record(t, object)
		}
	}
}

// Deny records whether the controller has no permission to read an object. If the permission has changed, the object
// counts as changed.
func (s *Store) Deny(ref ir.Ref, denied bool) {
	s.DenyAll(func(yield func(ir.Ref) bool) { yield(ref) }, denied)
}

// DenyAll has the effect of calling Deny for each object, but copies the map of denied objects only once.
func (s *Store) DenyAll(refs iter.Seq[ir.Ref], denied bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var next map[ir.Ref]bool
	for ref := range refs {
		if s.taken.denied[ref] == denied {
			continue
		}
		if next == nil {
			// Change a copy of the map, because snapshots share the old map.
			next = maps.Clone(s.taken.denied)
		}
		if next == nil {
			next = map[ir.Ref]bool{}
		}
		if next[ref] = true; !denied {
			delete(next, ref)
		}
		s.change(ref)
	}
	if next != nil {
		s.taken.denied = next
	}
}

// Get returns the object with the same kind, namespace and name, or nil if there is no such object. Code that fills the
// store uses Get to keep an object that has not changed instead of storing a copy. Other code uses a Snapshot.
func (s *Store) Get(object kinds.Object) kinds.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.table(object); t != nil {
		return t.get(object)
	}
	return nil
}

// Changed returns a channel that receives a value after objects have changed, and after Wake. The caller should then
// call Take.
func (s *Store) Changed() <-chan struct{} { return s.wake }

// Wake sends a value to the channel that Changed returns, although no object has changed. The code that fills the store
// calls it if something other than an object has changed, such as the problems in a folder of manifests.
func (s *Store) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Take returns the current objects, and the changes since the last call of Take. The store must have only one caller of
// Take.
func (s *Store) Take() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.taken
	taken.Since, taken.Sequence = taken.Sequence, taken.Sequence+1
	taken.tables = maps.Clone(taken.tables)
	for name, t := range s.tables {
		if t.stale {
			taken.tables[name], t.stale = t.copy(), false
		}
	}
	s.taken = taken
	taken.Changed = slices.Collect(maps.Keys(s.changed))
	s.changed = map[ir.Ref]struct{}{}
	return &taken
}

func (s *Store) table(object kinds.Object) *table {
	row := kinds.Of(object)
	if row == nil {
		return nil
	}
	return s.tables[row.Name]
}

// The method record lists an object as changed. An object of a kind with an owner is listed under the name of its
// owner: an EndpointSlice under the name of its Service. If object is nil, record does nothing.
func (s *Store) record(t *table, object kinds.Object) {
	if object == nil {
		return
	}
	ref := ir.Ref{Kind: t.row.Name, Namespace: object.GetNamespace(), Name: object.GetName()}
	if t.row.Owner != nil {
		ref.Name = t.row.Owner(object)
	}
	s.change(ref)
}

func (s *Store) change(ref ir.Ref) {
	s.changed[ref] = struct{}{}
	s.Wake()
}
