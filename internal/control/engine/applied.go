package engine

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/shrinking"
)

// Applied describes the applied changes of the live configuration.
type Applied struct {
	// Succeeded and Failed are the numbers of changes. A change has failed if the configuration in effect lacks a part
	// afterwards, because Caddy rejects a route, or a port cannot be opened.
	Succeeded, Failed uint64
	// Complete is true if the whole configuration is in effect. It is false before the first change.
	Complete bool
	// Since is the time of the last change after which the configuration was complete.
	Since time.Time
	// Hash identifies the configuration, without the endpoints. It is the same in all replicas with the same
	// configuration. It is 0 without the option nginx_metrics.
	Hash uint64
}

// Applied returns which changes were applied until now.
func (e *Engine) Applied() Applied { return *e.applies.Load() }

// recordDelta records that a change was applied. The first change counts although it may be empty.
func (l *loop) recordDelta(d *document.Delta) {
	l.hash.update(d)
	before := l.applies.Load()
	l.recordApplied(!d.Empty() || before.Succeeded+before.Failed == 0)
}

// recordApplied records whether the configuration is in effect completely. changed is true after a change, and false
// if parts were tried again.
func (l *loop) recordApplied(changed bool) {
	now := *l.applies.Load()
	complete := !l.live.Incomplete() && l.patchFailure.Load() == nil
	switch {
	case changed && complete:
		now.Succeeded++
	case changed:
		now.Failed++
	}
	if complete && (changed || !now.Complete) {
		now.Since = time.Now()
	}
	now.Complete, now.Hash = complete, l.hash.sum
	l.applies.Store(&now)
}

// configHash is a hash of the live configuration. It is the sum of the hashes of the parts, so that a change costs time
// only for the parts that change.
type configHash struct {
	sum   uint64
	parts *shrinking.Map[string, uint64]
}

// hashAll computes the hash of the configuration that is in effect, or forgets it if no option needs it.
func (l *loop) hashAll(needed bool) {
	switch {
	case !needed:
		l.hash = configHash{}
	case l.hash.parts == nil:
		l.hash.parts = &shrinking.Map[string, uint64]{}
		l.hash.update(document.Diff(&document.Live{}, l.document()))
	}
}

// update replaces the hashes of the parts that a change contains. It does nothing before hashAll.
func (h *configHash) update(d *document.Delta) {
	if h.parts == nil {
		return
	}
	for name, host := range d.Hosts {
		h.set("host/"+name, host, host == nil)
	}
	for id, b := range d.Backends {
		if b != nil {
			// Replicas see changes of endpoints at different times.
			copied := *b
			copied.Endpoints = nil
			b = &copied
		}
		h.set("backend/"+id, b, b == nil)
	}
	for name, port := range d.Ports {
		h.set("port/"+name, port, port == nil)
	}
	for name, c := range d.Certificates {
		h.set("certificate/"+name, c, c == nil)
	}
	for name, g := range d.ListenerGroups {
		h.set("listeners/"+name, g, g == nil)
	}
	if d.Global != nil {
		h.set("global", d.Global, false)
	}
}

// set replaces the hash of one part, or removes it.
func (h *configHash) set(key string, value any, removed bool) {
	h.sum -= h.parts.Get(key)
	if removed {
		h.parts.Delete(key)
		return
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(key)) // The hash never returns an error.
	if err := json.NewEncoder(hash).Encode(value); err != nil {
		h.parts.Delete(key)
		return
	}
	h.parts.Set(key, hash.Sum64())
	h.sum += hash.Sum64()
}

// Orphan describes whether the backends of an Ingress can serve requests.
type Orphan struct {
	Ingress ir.Ref
	// NoService is true if a Service of the Ingress, or the port of a Service, does not exist. NoEndpoint is true if a
	// Service has no endpoints.
	NoService, NoEndpoint bool
}

// Orphans returns all Ingresses with a route, sorted by namespace and name.
func (e *Engine) Orphans() []Orphan {
	found := map[ir.Ref]*Orphan{}
	for h := range e.state.Load().config.AllVirtualHosts() {
		for _, r := range h.Routes {
			if r.Origin.Kind == kinds.Ingress {
				e.addOrphan(found, r)
			}
		}
	}
	all := make([]Orphan, 0, len(found))
	for _, o := range found {
		all = append(all, *o)
	}
	slices.SortFunc(all, func(a, b Orphan) int {
		return cmp.Or(strings.Compare(a.Ingress.Namespace, b.Ingress.Namespace),
			strings.Compare(a.Ingress.Name, b.Ingress.Name))
	})
	return all
}

// addOrphan adds what a route says about its Ingress.
func (e *Engine) addOrphan(found map[ir.Ref]*Orphan, r *ir.Route) {
	o := found[r.Origin]
	if o == nil {
		o = &Orphan{Ingress: r.Origin}
		found[r.Origin] = o
	}
	for i := range r.Backends {
		switch b := r.Backends[i].Backend; {
		case b.Missing:
			o.NoService = true
		case e.endpoints.Backend(b.ID).Empty():
			o.NoEndpoint = true
		}
	}
}
