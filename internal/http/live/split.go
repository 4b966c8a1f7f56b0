package live

import (
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/upstream/split"
)

// newSplit creates the split that selects one of several weighted destinations of a route. to creates the destination
// of a share.
func newSplit(shares []*document.Share, to func(*document.Destination) destination) *split.Split[*destination] {
	all := make([]split.Share[*destination], len(shares))
	for i, d := range shares {
		next := to(&d.Destination)
		all[i] = split.Share[*destination]{To: &next, Weight: d.Weight, Fallback: d.Fallback}
	}
	return split.New((*destination).empty, all...)
}

// empty reports whether requests to the destination would find no endpoint. A destination without a backend is never
// empty.
func (d *destination) empty() bool { return d.backend != nil && d.backend.Empty() }

// to chooses the destination of a request. It never returns nil, because a split without positive weights is rejected
// when its route is added.
func (r *Route) to() *destination {
	if r.split == nil {
		return &r.destination
	}
	return r.split.Next()
}

// destinations yields all destinations of a route.
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

// accessKey identifies the access rules of a route. It is equal for routes that accept the same clients.
func (r *Route) accessKey() string {
	all := r.access
	for d := range r.destinations {
		if d.access != r.access {
			all += "," + d.access
		}
	}
	return all
}

// refused returns nil if the chains of all destinations work. Otherwise it returns the reason why the chain of a
// destination returns 503, for the first such destination.
func (r *Route) refused() error {
	for d := range r.destinations {
		if d.chain.refused != nil {
			return d.chain.refused
		}
	}
	return nil
}
