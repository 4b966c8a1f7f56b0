// Package snapshot holds the Kubernetes objects of one moment. A Store follows the objects; Take returns all of them as
// an immutable Snapshot, in time that does not depend on their number.
package snapshot

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/tidwall/btree"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
)

// Snapshot is the objects of one moment. Neither it nor an object in it may be changed.
type Snapshot struct {
	Ingresses Objects[*networkingv1.Ingress]
	Classes   Objects[*networkingv1.IngressClass]
	Services  Objects[*corev1.Service]
	// Annotated are those of the Services that have an annotation of our own. In a large cluster they are few.
	Annotated  Objects[*corev1.Service]
	Secrets    Objects[*corev1.Secret]
	ConfigMaps Objects[*corev1.ConfigMap]
	// Namespaces are there in a cluster only if an option needs them.
	Namespaces Objects[*corev1.Namespace]
	slices     Objects[*discoveryv1.EndpointSlice]
	// denied is never changed.
	denied map[ir.Ref]bool

	// Sequence counts the snapshots of a store from 1.
	Sequence uint64
	// Changed are the objects that were added, changed or deleted after the snapshot with the sequence Since, in no
	// particular order. An EndpointSlice is named by its Service. Since 0 there was nothing.
	Changed []ir.Ref
	Since   uint64
}

// Joined returns s with what changed since an earlier snapshot of the same store, which nobody has worked on yet. Since of
// the result is that of earlier.
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
	return map[string]int{
		kinds.Ingress: s.Ingresses.Len(), kinds.IngressClass: s.Classes.Len(), kinds.Service: s.Services.Len(),
		kinds.EndpointSlice: s.slices.Len(), kinds.Secret: s.Secrets.Len(), kinds.ConfigMap: s.ConfigMaps.Len(),
		kinds.Namespace: s.Namespaces.Len(),
	}
}

// Denied says that the source may not read an object. Whether there is one nobody knows.
func (s *Snapshot) Denied(ref ir.Ref) bool { return s.denied[ref] }

// Objects are the objects of one kind, by namespace and name.
type Objects[T any] struct{ tree btree.Map[string, T] }

// Get returns one object.
func (o *Objects[T]) Get(namespace, name string) (T, bool) { return o.tree.Get(key(namespace, name)) }

// All yields the objects in the order of namespace and name.
func (o *Objects[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		o.tree.Scan(func(_ string, v T) bool { return yield(v) })
	}
}

// Len returns how many there are.
func (o *Objects[T]) Len() int { return o.tree.Len() }

// key has a separator that sorts before every character of a name, so that the objects of a namespace are neighbours.
func key(namespace, name string) string { return namespace + "\x00" + name }

// EndpointSlices yields the slices of one Service, in the order of their names.
func (s *Snapshot) EndpointSlices(namespace, service string) iter.Seq[*discoveryv1.EndpointSlice] {
	prefix := key(namespace, service) + "\x00"
	return func(yield func(*discoveryv1.EndpointSlice) bool) {
		s.slices.tree.Ascend(prefix, func(k string, v *discoveryv1.EndpointSlice) bool {
			return strings.HasPrefix(k, prefix) && yield(v)
		})
	}
}

// ServiceOf returns the name of the Service that a slice belongs to.
func ServiceOf(slice *discoveryv1.EndpointSlice) string {
	return slice.Labels[discoveryv1.LabelServiceName]
}

// Older orders Ingresses by precedence: the older one first, and of two of the same second the one whose
// "namespace/name" sorts last, as ingress-nginx's sortIngressSlice does.
func Older(a, b kinds.Object) int {
	return cmp.Or(
		a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
		cmp.Compare(b.GetNamespace()+"/"+b.GetName(), a.GetNamespace()+"/"+a.GetName()),
	)
}

// RefOf names an object of a watched kind.
func RefOf(object kinds.Object) ir.Ref {
	return ir.Ref{Kind: kindOf(object), Namespace: object.GetNamespace(), Name: object.GetName()}
}

func kindOf(object kinds.Object) string {
	switch object.(type) {
	case *networkingv1.Ingress:
		return kinds.Ingress
	case *networkingv1.IngressClass:
		return kinds.IngressClass
	case *corev1.Service:
		return kinds.Service
	case *discoveryv1.EndpointSlice:
		return kinds.EndpointSlice
	case *corev1.Secret:
		return kinds.Secret
	case *corev1.ConfigMap:
		return kinds.ConfigMap
	case *corev1.Namespace:
		return kinds.Namespace
	}
	return ""
}
