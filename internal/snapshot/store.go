package snapshot

import (
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
)

// Store follows objects as they come and go. Its methods may be called from any goroutine.
//
// What changes nothing is no change: an object that equals the one before apart from its resource version and managed
// fields, and a new status of an Ingress, which this controller writes itself. Take returns the newest object all the
// same, but neither wakes its caller nor names it.
type Store struct {
	mu      sync.Mutex
	current Snapshot
	changed map[ir.Ref]struct{}
	// services has the Service of each slice, because a slice can be given to another one, and is found by its Service.
	services map[sliceName]string
	wake     chan struct{}
}

type sliceName struct{ namespace, name string }

// NewStore returns a store without objects.
func NewStore() *Store {
	return &Store{changed: map[ir.Ref]struct{}{}, services: map[sliceName]string{}, wake: make(chan struct{}, 1)}
}

// Set adds an object or replaces it. The object belongs to the store from then on.
func (s *Store) Set(object kinds.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(object)
}

// Delete removes an object; one that is not there is no error. Only the kind, namespace and name of the argument count.
func (s *Store) Delete(object kinds.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(object)
}

// Apply removes and sets many objects at once: no Take sees a part of it.
func (s *Store) Apply(set, gone []kinds.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range gone {
		s.remove(object)
	}
	for _, object := range set {
		s.set(object)
	}
}

// Deny notes that an object may not be read, or that it may be. That is a change of the object.
func (s *Store) Deny(ref ir.Ref, denied bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.denied[ref] == denied {
		return
	}
	// Snapshots have the old one.
	next := maps.Clone(s.current.denied)
	if next == nil {
		next = map[ir.Ref]bool{}
	}
	next[ref] = true
	if !denied {
		delete(next, ref)
	}
	s.current.denied = next
	s.record(ref)
}

// Get returns the object of the same kind, namespace and name, or nil. It is there for sources, which save a copy of an
// object that has not changed; all others look at a Snapshot.
func (s *Store) Get(object kinds.Object) kinds.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := object.(type) {
	case *networkingv1.Ingress:
		return get(&s.current.Ingresses, key(o.Namespace, o.Name))
	case *networkingv1.IngressClass:
		return get(&s.current.Classes, key("", o.Name))
	case *corev1.Service:
		return get(&s.current.Services, key(o.Namespace, o.Name))
	case *corev1.Secret:
		return get(&s.current.Secrets, key(o.Namespace, o.Name))
	case *corev1.ConfigMap:
		return get(&s.current.ConfigMaps, key(o.Namespace, o.Name))
	case *corev1.Namespace:
		return get(&s.current.Namespaces, key("", o.Name))
	case *discoveryv1.EndpointSlice:
		return get(&s.current.slices, sliceKey(o, s.services[sliceName{o.Namespace, o.Name}]))
	}
	return nil
}

// Changed returns a channel that receives a value when there is something new for Take.
func (s *Store) Changed() <-chan struct{} { return s.wake }

// Wake makes Changed receive a value although no object changed, for a source that has something else to tell.
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
	s.current.Sequence++
	taken := Snapshot{
		Ingresses:  s.current.Ingresses.copy(),
		Classes:    s.current.Classes.copy(),
		Services:   s.current.Services.copy(),
		Annotated:  s.current.Annotated.copy(),
		Secrets:    s.current.Secrets.copy(),
		ConfigMaps: s.current.ConfigMaps.copy(),
		Namespaces: s.current.Namespaces.copy(),
		slices:     s.current.slices.copy(),
		denied:     s.current.denied,
		Sequence:   s.current.Sequence,
		Changed:    slices.Collect(maps.Keys(s.changed)),
		Since:      s.current.Sequence - 1,
	}
	s.changed = map[ir.Ref]struct{}{}
	return &taken
}

func (s *Store) set(object kinds.Object) {
	changed := false
	switch o := object.(type) {
	case *networkingv1.Ingress:
		changed = set(&s.current.Ingresses, key(o.Namespace, o.Name), o)
	case *networkingv1.IngressClass:
		changed = set(&s.current.Classes, key("", o.Name), o)
	case *corev1.Service:
		changed = set(&s.current.Services, key(o.Namespace, o.Name), o)
		s.setAnnotated(o)
	case *corev1.Secret:
		changed = set(&s.current.Secrets, key(o.Namespace, o.Name), o)
	case *corev1.ConfigMap:
		changed = set(&s.current.ConfigMaps, key(o.Namespace, o.Name), o)
	case *corev1.Namespace:
		changed = set(&s.current.Namespaces, key("", o.Name), o)
	case *discoveryv1.EndpointSlice:
		s.setSlice(o)
	}
	if changed {
		s.record(RefOf(object))
	}
}

func (s *Store) setAnnotated(o *corev1.Service) {
	k := key(o.Namespace, o.Name)
	for name := range o.Annotations {
		if strings.HasPrefix(name, kinds.OwnPrefix) {
			s.current.Annotated.tree.Set(k, o)
			return
		}
	}
	remove(&s.current.Annotated, k)
}

func (s *Store) setSlice(o *discoveryv1.EndpointSlice) {
	name, service := sliceName{o.Namespace, o.Name}, ServiceOf(o)
	if before, ok := s.services[name]; ok && before != service {
		s.removeSlice(o)
	}
	s.services[name] = service
	if set(&s.current.slices, sliceKey(o, service), o) {
		s.recordSlice(o, service)
	}
}

func (s *Store) remove(object kinds.Object) {
	removed := false
	switch o := object.(type) {
	case *networkingv1.Ingress:
		removed = remove(&s.current.Ingresses, key(o.Namespace, o.Name))
	case *networkingv1.IngressClass:
		removed = remove(&s.current.Classes, key("", o.Name))
	case *corev1.Service:
		removed = remove(&s.current.Services, key(o.Namespace, o.Name))
		remove(&s.current.Annotated, key(o.Namespace, o.Name))
	case *corev1.Secret:
		removed = remove(&s.current.Secrets, key(o.Namespace, o.Name))
	case *corev1.ConfigMap:
		removed = remove(&s.current.ConfigMaps, key(o.Namespace, o.Name))
	case *corev1.Namespace:
		removed = remove(&s.current.Namespaces, key("", o.Name))
	case *discoveryv1.EndpointSlice:
		s.removeSlice(o)
	}
	if removed {
		s.record(RefOf(object))
	}
}

// removeSlice takes the Service from what was set, since whoever deletes may know no more than the name of the slice.
func (s *Store) removeSlice(o *discoveryv1.EndpointSlice) {
	name := sliceName{o.Namespace, o.Name}
	service, ok := s.services[name]
	if !ok {
		return
	}
	delete(s.services, name)
	remove(&s.current.slices, sliceKey(o, service))
	s.recordSlice(o, service)
}

// recordSlice tells the change as one of the Service's endpoints, because that is how they are looked up.
func (s *Store) recordSlice(o *discoveryv1.EndpointSlice, service string) {
	s.record(ir.Ref{Kind: kinds.EndpointSlice, Namespace: o.Namespace, Name: service})
}

func (s *Store) record(ref ir.Ref) {
	s.changed[ref] = struct{}{}
	s.Wake()
}

func sliceKey(o *discoveryv1.EndpointSlice, service string) string {
	return key(o.Namespace, service) + "\x00" + o.Name
}

func get[T kinds.Object](o *Objects[T], k string) kinds.Object {
	if v, ok := o.tree.Get(k); ok {
		return v
	}
	return nil
}

// set says whether v differs from the object it replaces.
func set[T any, P pointer[T]](o *Objects[P], k string, v P) bool {
	old, replaced := o.tree.Set(k, v)
	return !replaced || !same(old, v)
}

func remove[T any](o *Objects[T], k string) bool {
	_, ok := o.tree.Delete(k)
	return ok
}

func (o *Objects[T]) copy() Objects[T] { return Objects[T]{tree: *o.tree.Copy()} }
