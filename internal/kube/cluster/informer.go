package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	kubeclient "github.com/k8singress/k8singress/internal/kube/client"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// scope selects what one informer reads: a kind in one namespace or in all of them, or a single object.
type scope struct {
	kind            kinds.Kind
	namespace, name string
}

func (s scope) fieldSelector() string {
	var terms []string
	if s.kind.FieldSelector != "" {
		terms = append(terms, s.kind.FieldSelector)
	}
	if s.name != "" {
		terms = append(terms, fields.OneTermEqualSelector(metav1.ObjectNameField, s.name).String())
	}
	return strings.Join(terms, ",")
}

// where returns a description of the scope for messages, for example "in namespace x".
func (s scope) where() string {
	if s.namespace == "" {
		return "in the whole cluster"
	}
	return "in namespace " + s.namespace
}

// factory creates informers. Their requests are not subject to the rate limit of the write clients, because a queue of
// status writes must not delay the watches.
type factory struct {
	config  *rest.Config
	http    *http.Client
	clients map[schema.GroupVersion]rest.Interface
	store   *snapshot.Store
	errors  *watchErrors
	heard   *heard
	// limited is set if only some namespaces are watched. In this case, RBAC may allow access to these namespaces only.
	limited bool
}

func newFactory(config *rest.Config, o Options, store *snapshot.Store, log *zap.Logger) (*factory, error) {
	unlimited := rest.CopyConfig(config)
	unlimited.QPS = -1
	client, err := rest.HTTPClientFor(unlimited)
	if err != nil {
		return nil, fmt.Errorf("creating a client for the API server: %w", err)
	}
	return &factory{
		config: unlimited, http: client, clients: map[schema.GroupVersion]rest.Interface{},
		store: store, errors: newWatchErrors(o.OnWatchError, log), heard: new(heard),
		limited: len(o.Namespaces) > 0,
	}, nil
}

func (f *factory) informers(scopes []scope) ([]*informer, error) {
	list := make([]*informer, 0, len(scopes))
	for _, s := range scopes {
		i, err := f.informer(s)
		if err != nil {
			return nil, fmt.Errorf("creating an informer for %s: %w", s.kind.Resource, err)
		}
		list = append(list, i)
	}
	return list, nil
}

func (f *factory) client(gv schema.GroupVersion) (rest.Interface, error) {
	if c, ok := f.clients[gv]; ok {
		return c, nil
	}
	config := rest.CopyConfig(f.config)
	config.GroupVersion, config.APIPath = &gv, "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientForConfigAndClient(config, f.http)
	if err == nil {
		f.clients[gv] = c
	}
	return c, err
}

// informer lists and watches objects of one kind: all of them, the objects of one namespace, or a single object.
type informer struct {
	scope
	shared cache.SharedIndexInformer
	// registration.HasSyncedChecker tells when all objects of the first list are in the snapshot store. The informer
	// itself is synced earlier, when the objects are in its own store.
	registration cache.ResourceEventHandlerRegistration
	// denied is closed if the API server forbids access to the objects, and the controller can work without them.
	denied      chan struct{}
	denyOnce    sync.Once
	dispensable bool
	store       *snapshot.Store
	errors      *watchErrors
}

func (f *factory) informer(s scope) (*informer, error) {
	client, err := f.client(s.kind.GroupVersion)
	if err != nil {
		return nil, err
	}
	selector := s.fieldSelector()
	requests := cache.NewFilteredListWatchFromClient(client, s.kind.Resource, s.namespace,
		func(o *metav1.ListOptions) { o.FieldSelector = selector })
	source := &listened{
		ListerWatcher: kubeclient.Patient(requests, func(err error) { f.errors.add(s, err) }),
		kind:          s.kind.Name, to: f.heard,
	}
	i := &informer{
		scope: s, store: f.store, errors: f.errors, denied: make(chan struct{}),
		shared:      cache.NewSharedIndexInformer(source, s.kind.New(), 0, cache.Indexers{}),
		dispensable: s.kind.Dispensable || s.kind.ClusterScoped && f.limited,
	}
	err = errors.Join(i.shared.SetTransform(transform(s.kind, f.store)),
		i.shared.SetWatchErrorHandlerWithContext(i.failed))
	if err != nil {
		return nil, err
	}
	i.registration, err = i.shared.AddEventHandler(handler{s.kind, f.store, i.dispensable})
	return i, err
}

// failed is called whenever a list or watch request ends with an error. After a pause, the informer sends the next
// request by itself.
//
// If RBAC only allows access to some namespaces, cluster-scoped objects such as IngressClasses may be forbidden. The
// controller must serve requests without them, as ingress-nginx does. So the store marks the whole kind as denied until
// it gets an object of the kind. Objects of the kind that were read before are still used.
func (i *informer) failed(_ context.Context, _ *cache.Reflector, err error) {
	i.errors.add(i.scope, err)
	if i.dispensable && apierrors.IsForbidden(err) {
		if !i.shared.HasSynced() {
			i.store.Deny(ir.Ref{Kind: i.kind.Name}, true)
		}
		i.denyOnce.Do(func() { close(i.denied) })
	}
}

// transform returns a function that removes unneeded fields from each object that an informer receives. If an unchanged
// object is listed again after a watch has ended, the function returns the object that is already in the store, so that
// memory holds only one copy of each object.
func transform(kind kinds.Kind, store *snapshot.Store) cache.TransformFunc {
	return func(object any) (any, error) {
		o, ok := object.(kinds.Object)
		if !ok {
			return object, nil
		}
		if known := store.Get(o); known != nil && kinds.SameVersion(known, o) {
			return known, nil
		}
		kind.Trim(o)
		return o, nil
	}
}

// handler passes the objects of an informer to the store without copying them, so that memory holds only one copy of
// each object.
type handler struct {
	kind  kinds.Kind
	store *snapshot.Store
	// deniable is set if the controller can work without objects of this kind. If the API server forbids access to
	// them, the store then marks the kind as denied.
	deniable bool
}

func (h handler) OnAdd(object any, _ bool) { h.set(object) }

func (h handler) OnUpdate(_, object any) { h.set(object) }

// OnDelete also receives tombstones (cache.DeletedFinalStateUnknown) for objects that were deleted while there was no
// watch. The last state of such an object may be unknown.
func (h handler) OnDelete(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = h.lastState(tombstone)
	}
	if o, ok := object.(kinds.Object); ok {
		h.store.Delete(o)
	}
}

func (h handler) lastState(tombstone cache.DeletedFinalStateUnknown) any {
	namespace, name, err := cache.SplitMetaNamespaceKey(tombstone.Key)
	if tombstone.Obj != nil || err != nil {
		return tombstone.Obj
	}
	return h.kind.Named(namespace, name)
}

func (h handler) set(object any) {
	o, ok := object.(kinds.Object)
	if !ok {
		return
	}
	h.store.Set(o)
	if h.deniable {
		h.store.Deny(ir.Ref{Kind: h.kind.Name}, false)
	}
}
