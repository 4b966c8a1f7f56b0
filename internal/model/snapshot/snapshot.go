// Package snapshot holds the Kubernetes objects of one point in time. A Store tracks the current objects. Take returns
// them as an immutable Snapshot, in time that does not depend on the number of objects. Package kinds lists the kinds
// of these objects.
package snapshot

import (
	"cmp"
	"iter"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
)

// Snapshot holds the objects of one point in time. Neither the snapshot nor its objects may be modified.
type Snapshot struct {
	// tables maps the name of each kind to the table with the objects of this kind.
	tables map[string]*table
	// denied contains the objects that the controller has no permission to read. The map is never modified: a change
	// replaces it.
	denied map[ir.Ref]bool

	// Sequence is the number of the snapshot in its store, starting from 1.
	Sequence uint64
	// Changed lists the objects that were added, changed or deleted since the snapshot with the sequence number Since,
	// in no particular order. An object of a kind with an owner is listed under the name of its owner: an EndpointSlice
	// under the name of its Service. If Since is 0, Changed lists all objects.
	Changed []ir.Ref
	Since   uint64
}

// Of selects the objects of one kind in a snapshot, for example Of[*corev1.Secret](s). It panics if
// internal/model/kinds does not contain the kind.
func Of[T kinds.Object](s *Snapshot) Objects[T] {
	var object T
	return Objects[T]{s.tables[kinds.Of(object).Name]}
}

// OfKind returns the objects of the kind with the given name, such as kinds.Secret. For an unknown kind, the result has
// no objects.
func (s *Snapshot) OfKind(name string) Objects[kinds.Object] {
	if t, ok := s.tables[name]; ok {
		return Objects[kinds.Object]{t}
	}
	return Objects[kinds.Object]{&table{}}
}

// EndpointSlices yields the EndpointSlices of one Service, in the order of their names.
func (s *Snapshot) EndpointSlices(namespace, service string) iter.Seq[*discoveryv1.EndpointSlice] {
	return Of[*discoveryv1.EndpointSlice](s).OwnedBy(namespace, service)
}

// Joined returns a copy of s in which Changed also contains the changes of an earlier snapshot of the same store. The
// field Since of the copy is earlier.Since.
func (s *Snapshot) Joined(earlier *Snapshot) *Snapshot {
	joined := *s
	joined.Since = earlier.Since
	// slices.Clip makes append copy the list, so that s.Changed is not modified.
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

// Counts returns the number of objects of each kind.
func (s *Snapshot) Counts() map[string]int {
	counts := map[string]int{}
	for name, t := range s.tables {
		counts[name] = t.all.Len()
	}
	return counts
}

// MaxByName is the maximum number of objects of one kind that are watched by name in one namespace. The number is
// limited because each of these objects needs its own watch.
const MaxByName = 5000

// Denied reports whether the controller has no permission to read an object. In this case it is unknown whether the
// object exists.
func (s *Snapshot) Denied(ref ir.Ref) bool { return s.denied[ref] }

// Older compares objects by precedence, for sorting: older objects come first. Of two objects that were created in the
// same second, the object whose "namespace/name" sorts last comes first, as in ingress-nginx's sortIngressSlice.
func Older(a, b kinds.Object) int {
	return cmp.Or(
		a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
		cmp.Compare(b.GetNamespace()+"/"+b.GetName(), a.GetNamespace()+"/"+a.GetName()),
	)
}

// RefOf returns the Ref of an object. Its Kind is empty if internal/model/kinds does not contain the kind.
func RefOf(object kinds.Object) ir.Ref {
	ref := ir.Ref{Namespace: object.GetNamespace(), Name: object.GetName()}
	if row := kinds.Of(object); row != nil {
		ref.Kind = row.Name
	}
	return ref
}

// Elder returns a phrase for messages that names winner, which takes precedence over other, and the reason: "the older
// Ingress/shop/web" if winner was created first. Objects from manifests may have no creation time; their names then
// decide which object takes precedence.
func Elder(winner, other kinds.Object) string {
	name := RefOf(winner).String()
	if why := byName(winner, other); why != "" {
		return name + why
	}
	return "the older " + name
}

// ElderOfKind is like Elder, but leaves out the name of winner. The result is "an older Ingress", for example, followed
// by the string where. It is used in messages for the owner of other, who may not be allowed to see winner.
func ElderOfKind(winner, other kinds.Object, where string) string {
	kind := RefOf(winner).Kind + where
	if why := byName(winner, other); why != "" {
		return "a " + kind + why
	}
	return "an older " + kind
}

// byName returns the end of a phrase that explains why winner is treated as older although it was not created earlier.
// It returns "" if winner was created earlier.
func byName(winner, other kinds.Object) string {
	created, then := winner.GetCreationTimestamp(), other.GetCreationTimestamp()
	switch {
	case created.IsZero() && !then.IsZero():
		return " (which has no creationTimestamp, and is treated as older)"
	case created.IsZero():
		return " (which is treated as older because of its name: neither has a creationTimestamp)"
	case created.Equal(&then):
		return " (which is treated as older because of its name: both were created in the same second)"
	}
	return ""
}
