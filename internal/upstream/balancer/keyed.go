package balancer

import (
	"math/rand/v2"
	"slices"
)

const (
	// maxSubset is the maximum number of endpoints that share a hash. A larger LoadBalancing.HashSubset is reduced to
	// it.
	maxSubset = 64
	// maxWalk is the maximum number of ring points to search for an endpoint. The limit is reached only if nearly all
	// endpoints are out.
	maxWalk = 32 * pointsPerEndpoint
)

// along returns the first usable endpoint along the ring, or nil.
func (p *pick) along() *Endpoint {
	if size := p.state.policy.HashSubset; size > 1 && p.state.policy.hashBy != nil &&
		p.state.policy.SessionCookie == nil {
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

// oneOf returns a random usable endpoint among the first size endpoints along the ring, or nil. With this choice a new
// endpoint changes few of the subsets.
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
