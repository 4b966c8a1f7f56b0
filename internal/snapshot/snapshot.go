// Package snapshot holds the Kubernetes objects of one moment. A Store follows the objects; Take returns all of them as
// an immutable Snapshot, in time that does not depend on their number. The kinds of objects are the rows of internal/kinds.
package snapshot

import (
	"cmp"
	"iter"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
)

// Snapshot is the objects of one moment. Neither it nor an object in it may be changed.
type Snapshot struct {
	// tables has a table for the name of each kind.
	tables map[string]*table
	// denied is never changed.
	denied map[ir.Ref]bool

	// Sequence counts the snapshots of a store from 1.
	Sequence uint64
	// Changed are the objects that were added, changed or deleted after the snapshot with the sequence Since, in no
	// particular order. An object of a kind with an owner is named by its owner: an EndpointSlice by its Service. Since 0
	// there was nothing.
	Changed []ir.Ref
	Since   uint64
}

// Of returns the objects of one kind, as in Of[*corev1.Secret](s). It panics if the type is not a row of internal/kinds.
func Of[T kinds.Object](s *Snapshot) Objects[T] {
	var object T
	return Objects[T]{s.tables[kinds.Of(object).Name]}
}

// OfKind returns the objects of the kind with a name, such as kinds.Secret. There are none of an unknown kind.
func (s *Snapshot) OfKind(name string) Objects[kinds.Object] {
	if t, ok := s.tables[name]; ok {
		return Objects[kinds.Object]{t}
	}
	return Objects[kinds.Object]{&table{}}
}

// EndpointSlices yields the slices of one Service, in the order of their names.
func (s *Snapshot) EndpointSlices(namespace, service string) iter.Seq[*discoveryv1.EndpointSlice] {
	return Of[*discoveryv1.EndpointSlice](s).OwnedBy(namespace, service)
}

// Joined returns s with the changes since an earlier snapshot of the same store added to Changed. Since of the result is
// that of earlier.
func (s *Snapshot) Joined(earlier *Snapshot) *Snapshot {
	joined := *s
	joined.Since = earlier.Since
	// The list of s stays as it is.
	joined.Changed = slices.Clip(s.Changed)
	seen := make(map[ir.Ref]struct{}, len(s.Changed))
	for _, ref := range s.Changed {
		seen[ref] = struct{}{}
	}
	for _, ref := range earlier.Changed {
		if _, ok := seen[ref]; !ok {
			joined.Changed = append(joined.Changed, ref)
		}
	}
	return &joined
}

// Counts returns how many objects there are of each kind.
func (s *Snapshot) Counts() map[string]int {
	counts := map[string]int{}
	for name, t := range s.tables {
		counts[name] = t.all.Len()
	}
	return counts
}

// MostByName is how many objects of a kind a source follows by name for one namespace: each is a watch of its own.
const MostByName = 5000

// Denied reports whether the source is not allowed to read an object. It is unknown then whether the object exists.
func (s *Snapshot) Denied(ref ir.Ref) bool { return s.denied[ref] }

// Older orders Ingresses by precedence: the older one first, and of two of the same second the one whose
// "namespace/name" sorts last, as ingress-nginx's sortIngressSlice does.
func Older(a, b kinds.Object) int {
	return cmp.Or(
		a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
		cmp.Compare(b.GetNamespace()+"/"+b.GetName(), a.GetNamespace()+"/"+a.GetName()),
	)
}

// RefOf names an object of a kind that is read. The Kind of another object is empty.
func RefOf(object kinds.Object) ir.Ref {
	ref := ir.Ref{Namespace: object.GetNamespace(), Name: object.GetName()}
	if row := kinds.Of(object); row != nil {
		ref.Kind = row.Name
	}
	return ref
}

// Elder names an object that counts before another one, and says what decided that: "the older Ingress/shop/web" if it was
// created before. Manifests do not say when, and then names decide.
func Elder(winner, other kinds.Object) string {
	name := RefOf(winner).String()
	if why := byName(winner, other); why != "" {
		return name + why
	}
	return "the older " + name
}

// ElderOfKind is like Elder, without the name: the message is for the owner of the other object, who may not be allowed to see it.
func ElderOfKind(winner, other kinds.Object, where string) string {
	kind := RefOf(winner).Kind + where
	if why := byName(winner, other); why != "" {
		return "a " + kind + why
	}
	return "an older " + kind
}

// byName is empty where the age has decided.
func byName(winner, other kinds.Object) string {
	created, then := winner.GetCreationTimestamp(), other.GetCreationTimestamp()
	switch {
	case created.IsZero() && !then.IsZero():
		return " (which has no creationTimestamp, and counts as older)"
	case created.IsZero():
		return " (which counts as older by its name: neither has a creationTimestamp)"
	case created.Equal(&then):
		return " (which counts as older by its name: both were created in the same second)"
	}
	return ""
}
