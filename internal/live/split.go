package live

import (
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/split"
)

// newSplit is for a document with more than one share.
func newSplit(shares []*document.Share, to func(*document.Destination) destination) *split.Split[*destination] {
	all := make([]split.Share[*destination], len(shares))
	for i, d := range shares {
		next := to(&d.Destination)
		all[i] = split.Share[*destination]{To: &next, Weight: d.Weight, Fallback: d.Fallback}
	}
	return split.New((*destination).empty, all...)
}

// empty says whether there is no endpoint to answer.
func (d *destination) empty() bool { return d.backend != nil && d.backend.Empty() }

// to chooses the destination of a request. A split without weights is refused when it is added, so there is one.
func (r *Route) to() *destination {
	if r.split == nil {
		return &r.destination
	}
	return r.split.Next()
}

// destinations yields all of a route.
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

// admits is the same for routes that let in the same clients.
func (r *Route) admits() string {
	all := r.access
	for d := range r.destinations {
		if d.access != r.access {
			all += "," + d.access
		}
	}
	return all
}

// refused returns why the first of the destinations that answers 503 does so, or nil.
func (r *Route) refused() error {
	for d := range r.destinations {
		if d.chain.refused != nil {
			return d.chain.refused
		}
	}
	return nil
}
