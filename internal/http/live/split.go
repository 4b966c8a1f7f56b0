package live

import (
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/upstream/split"
)

// newSplit creates the split that distributes the requests of a route over several destinations by their weights. The
// parameter to is a function that converts a destination from the format of the live configuration.
func newSplit(shares []*document.Share, to func(*document.Share) destination) *split.Split[*destination] {
	all := make([]split.Share[*destination], len(shares))
	for i, d := range shares {
		next := to(d)
		all[i] = split.Share[*destination]{To: &next, Weight: d.Weight, Fallback: d.Fallback}
	}
	return split.New((*destination).empty, all...)
}

// empty reports whether the destination has a backend without endpoints. A destination without a backend needs no
// endpoints.
func (d *destination) empty() bool { return d.backend != nil && d.backend.Empty() }

// r.to() selects the destination of a request. If the route has several destinations, it distributes the requests by
// their weights. It never returns nil, because a route whose destinations all have weight zero is rejected when it is
// added.
func (r *Route) to() *destination {
	if r.split == nil {
		return &r.destination
	}
	return r.split.Next()
}

// destinations calls yield with each destination of the route, until yield returns false.
func (r *Route) destinations(yield func(*destination) bool) {
	if r.split == nil {
		yield(&r.destination)
		return
	}
	for _, share := range r.split.Shares {
		if !yield(share.To) {
			return
		}
	}
}

// accessKey returns a string that identifies the access rules of a route. Two routes with the same access rules have
// the same key.
func (r *Route) accessKey() string {
	all := r.access
	for d := range r.destinations {
		if d.access != r.access {
			all += "," + d.access
		}
	}
	return all
}

// refused returns the reason why the handler chain of a destination returns 503, or nil if the chains of all
// destinations work. If several chains return 503, the reason of the first one is returned.
func (r *Route) refused() error {
	for d := range r.destinations {
		if d.chain.refused != nil {
			return d.chain.refused
		}
	}
	return nil
}
