package balancer

import (
	"math/rand/v2"
	"slices"
)

const (
	// maxSubset is how many endpoints may share a hash; LoadBalancing.HashSubset beyond it counts as this.
	maxSubset = 64
	// maxWalk is how far along the ring an endpoint is looked for. Nearly all would have to be out to come so far.
	maxWalk = 32 * pointsPerEndpoint
)

// along returns the first endpoint along the ring that the request may go to, or nil.
func (p *pick) along() *Endpoint {
	if size := p.state.policy.HashSubset; size > 1 && p.state.policy.hashBy != nil && p.state.policy.SessionCookie == nil {
		if e := p.oneOf(min(size, maxSubset, len(p.state.endpoints))); e != nil {
			return e
		}
	}
	r := p.state.ring
	i := r.find(p.at)
	for range min(len(r.points), maxWalk) {
		if e := r.at(i); p.mayKeyed(e) {
			return e
		}
		if i++; i == len(r.points) {
			i = 0
		}
	}
	return p.scan(int(p.at % uint64(len(p.state.endpoints))))
}

// oneOf returns one of the first endpoints along the ring, at random. So a new endpoint changes few of the subsets.
func (p *pick) oneOf(size int) *Endpoint {
	var found [maxSubset]*Endpoint
	r, n := p.state.ring, 0
	i := r.find(p.at)
	for range r.points {
		if n == size {
			break
		}
		if e := r.at(i); !slices.Contains(found[:n], e) {
			found[n] = e
			n++
		}
		if i++; i == len(r.points) {
			i = 0
		}
	}
	first := rand.IntN(n)
	for i := range n {
		if e := found[(first+i)%n]; p.mayKeyed(e) {
			return e
		}
	}
	return nil
}
