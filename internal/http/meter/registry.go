// Package meter counts the requests of each route. A route in the routing table holds a pointer to its counters, so
// that a request needs neither a map lookup nor an allocation. The counters belong to the labels of the route: they
// continue if its settings change, and end with the last route that has these labels.
package meter

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/process/exposition"
)

// Labels identify the counters of a route. They come from the objects that define the route, and never from a request,
// so that clients cannot create series.
type Labels struct {
	// Namespace and Ingress name the object that serves the request. For the share of a canary, it is the canary.
	Namespace, Ingress string
	// Service is the Service of the rule in that object.
	Service string
	// Host and Path are the host and the path of the rule. Host is empty for a rule without a host.
	Host, Path string
	// Canary is the ID of the backend ("namespace/service/port") if the route is the share of a canary, and otherwise
	// empty. MainIngress and MainService then name the Ingress beside which the canary stands, and its Service.
	Canary, MainIngress, MainService string
}

// maxLabel is the maximum size of a label in bytes. The names of Kubernetes objects have at most 253 characters, but a
// path can be as long as its object.
const maxLabel = 512

// bounded returns the labels with the values that metrics have: valid UTF-8 of at most maxLabel bytes each. Routes
// whose labels differ only behind that size share their counters.
func (l Labels) bounded() Labels {
	for _, value := range []*string{
		&l.Namespace, &l.Ingress, &l.Service, &l.Host, &l.Path, &l.Canary, &l.MainIngress, &l.MainService,
	} {
		if len(*value) > maxLabel {
			*value = strings.Clone((*value)[:maxLabel])
			for !utf8.ValidString(*value) && len(*value) > maxLabel-utf8.UTFMax {
				*value = (*value)[:len(*value)-1]
			}
		}
		if !utf8.ValidString(*value) {
			*value = strings.ToValidUTF8(*value, "\uFFFD")
		}
	}
	return l
}

// Registry holds the counters of all routes. The zero value is an empty registry. It is safe for concurrent use, but
// requests do not use it.
type Registry struct {
	mu     sync.Mutex
	routes shrinking.Map[Labels, *Route]
	// sorted has all routes, sorted by the text of their labels. It is nil after a change.
	sorted []*Route
	// nginx is nil without the metrics with the names of ingress-nginx.
	nginx atomic.Pointer[Nginx]
	// skipping has the channels of Others as keys.
	skipping sync.Map
	// generations is the number of calls of newNginx.
	generations atomic.Uint64
}

// SetNginx starts to count requests with the names of ingress-nginx, or stops if o is nil. If the options are the same
// as before, the counters go on.
func (r *Registry) SetNginx(o *NginxOptions) {
	before := r.nginx.Load()
	switch {
	case o == nil:
		r.nginx.Store(nil)
	case before == nil || !before.Equal(o):
		n := newNginx(*o)
		n.generation = r.generations.Add(1)
		r.nginx.Store(n)
	}
}

// Nginx returns the counters with the names of ingress-nginx, or nil.
func (r *Registry) Nginx() *Nginx { return r.nginx.Load() }

// Acquire returns the counters for the labels. Each call needs a call of Release.
func (r *Registry) Acquire(of Labels) *Route {
	of = of.bounded()
	r.mu.Lock()
	defer r.mu.Unlock()
	route := r.routes.Get(of)
	if route == nil {
		route = &Route{Labels: of}
		r.routes.Set(of, route)
		r.sorted = nil
	}
	route.users++
	return route
}

// Release ends one use of the counters. The last use ends their series. Requests in progress can still use the
// counters. If the route is nil, Release does nothing.
func (r *Registry) Release(route *Route) {
	if route == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if route.users--; route.users > 0 {
		return
	}
	r.routes.Delete(route.Labels)
	r.sorted = nil
	route.ended.Store(true)
	if n := r.nginx.Load(); n != nil {
		n.end(route)
	}
}

// Used returns the routes that have served at least one request, sorted by their labels. Routes without requests have
// no series, so a cluster with many unused routes has short metrics.
func (r *Registry) Used() []*Route {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sort()
	used := make([]*Route, 0, len(r.sorted))
	for _, route := range r.sorted {
		if route.used() {
			used = append(used, route)
		}
	}
	return used
}

// sort sorts the routes if they have changed since the last call.
func (r *Registry) sort() {
	if r.sorted != nil {
		return
	}
	r.sorted = slices.Collect(r.routes.Values())
	var labels []exposition.Label
	for _, route := range r.sorted {
		if route.text == "" {
			labels = route.Labels.appendTo(labels[:0])
			route.text = exposition.Text(labels)
		}
	}
	slices.SortFunc(r.sorted, func(a, b *Route) int {
		if order := strings.Compare(a.text, b.text); order != 0 {
			return order
		}
		return cmp.Or(strings.Compare(a.Labels.MainIngress, b.Labels.MainIngress),
			strings.Compare(a.Labels.MainService, b.Labels.MainService),
			strings.Compare(a.Labels.Canary, b.Labels.Canary))
	})
}

// Len returns the number of routes with different labels, including routes without requests.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.routes.Len()
}
