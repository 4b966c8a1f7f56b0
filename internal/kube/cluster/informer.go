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

// where describes the scope in a message.
func (s scope) where() string {
	if s.namespace == "" {
		return "in the whole cluster"
	}
	return "in namespace " + s.namespace
}

// factory creates informers. Their requests do not count against the rate limit of the writers, because a queue of
// status writes must not delay the watches.
type factory struct {
	config  *rest.Config
	http    *http.Client
	clients map[schema.GroupVersion]rest.Interface
	store   *snapshot.Store
	errors  *watchErrors
	// limited is set if only some namespaces are watched. RBAC may be limited to them in this case.
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
		store: store, errors: newWatchErrors(o.OnWatchError, log), limited: len(o.Namespaces) > 0,
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

// informer is one list and watch.
type informer struct {
	scope
	shared cache.SharedIndexInformer
	// registration has synced when the first list is in the snapshot store, not just in the informer's own store.
	registration cache.ResourceEventHandlerRegistration
	// denied is closed if the API server forbids access to a kind that the controller can do without.
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
	source := kubeclient.Patient(cache.NewFilteredListWatchFromClient(client, s.kind.Resource, s.namespace,
		func(o *metav1.ListOptions) { o.FieldSelector = selector }), func(err error) { f.errors.add(s, err) })
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

// failed is called whenever a list or watch ends. The informer starts the next one by itself after a pause.
//
// With RBAC for some namespaces only, cluster-scoped objects may be forbidden. Like ingress-nginx, this controller then
// works without IngressClasses: objects that it may not read must not keep it from serving. The store marks the whole
// kind as denied until it gets an object of the kind. If objects of the kind were read before, they are used instead.
func (i *informer) failed(_ context.Context, _ *cache.Reflector, err error) {
	i.errors.add(i.scope, err)
	if i.dispensable && apierrors.IsForbidden(err) {
		if !i.shared.HasSynced() {
			i.store.Deny(ir.Ref{Kind: i.kind.Name}, true)
		}
		i.denyOnce.Do(func() { close(i.denied) })
	}
}

// transform returns a function that trims a new object. If an unchanged object is listed again after a lost watch, the
// function returns the copy in the store, so that there is only one copy of each object.
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

// handler passes the objects of an informer to the store. It passes the same pointers, so that there is only one copy
// of each object.
type handler struct {
	kind  kinds.Kind
	store *snapshot.Store
	// deniable is set if the kind may be marked as denied in the store.
	deniable bool
}

func (h handler) OnAdd(object any, _ bool) { h.set(object) }

func (h handler) OnUpdate(_, object any) { h.set(object) }

// OnDelete also gets tombstones, for objects that disappeared while the watch was lost. Their last state may be
// unknown.
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
