package snapshot

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
)

// Store follows objects as they come and go. Its methods may be called from any goroutine. Objects of a kind that is not a
// row of internal/kinds are ignored.
//
// An object that equals the one before is not a change, apart from its resource version, its managed fields, and a status
// that this controller writes. Take returns the newest object all the same, but neither wakes its caller nor names it.
type Store struct {
	mu     sync.Mutex
	tables map[string]*table
	// taken has no field but Changed that a snapshot could change: the next one shares its tables and denied.
	taken   Snapshot
	changed map[ir.Ref]struct{}
	wake    chan struct{}
}

// NewStore returns a store without objects.
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

// Set adds an object or replaces it. The object belongs to the store from then on.
func (s *Store) Set(object kinds.Object) { s.Apply([]kinds.Object{object}, nil) }

// Delete removes an object; one that is not there is not an error. Only the kind, namespace and name of the argument count.
func (s *Store) Delete(object kinds.Object) { s.Apply(nil, []kinds.Object{object}) }

// Apply removes and sets many objects at once: no Take sees a part of it.
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

// Deny notes that an object may not be read, or that it may be. That is a change of the object.
func (s *Store) Deny(ref ir.Ref, denied bool) {
	s.DenyAll(func(yield func(ir.Ref) bool) { yield(ref) }, denied)
}

// DenyAll is Deny for many, which costs one copy of all that may not be read.
func (s *Store) DenyAll(refs iter.Seq[ir.Ref], denied bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var next map[ir.Ref]bool
	for ref := range refs {
		if s.taken.denied[ref] == denied {
			continue
		}
		if next == nil {
			// Snapshots have the old one.
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

// Get returns the object of the same kind, namespace and name, or nil. It is there for sources, which save a copy of an
// object that has not changed; other callers read a Snapshot.
func (s *Store) Get(object kinds.Object) kinds.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.table(object); t != nil {
		return t.get(object)
	}
	return nil
}

// Changed returns a channel that receives a value when there is something new for Take.
func (s *Store) Changed() <-chan struct{} { return s.wake }

// Wake makes Changed receive a value although no object changed, for a source that has other news.
func (s *Store) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Take returns all objects as they are now, and what changed since the last call. It is for one caller.
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

// record notes the change of an object, or of its owner. There may be none.
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
