package balancer

import (
	"math/rand/v2"
	"slices"
)

const (
	// maxSubset is the maximum number of endpoints among which the requests with the same hash are distributed. It also
	// limits LoadBalancing.HashSubset.
	maxSubset = 64
	// maxWalk is the maximum number of ring points that are searched for a usable endpoint. More would only be needed
	// if nearly all endpoints are ejected or unhealthy.
	maxWalk = 32 * pointsPerEndpoint
)

// The method along returns the endpoint for the request's hash key: the first usable endpoint on the hash ring,
// starting at the position of the key. If the policy hashes to a subset of the endpoints, it prefers an endpoint of the
// subset. It returns nil if no endpoint may be used.
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

// oneOf implements hashing to a subset of the endpoints. The number of endpoints in the subset is size. They are the
// first endpoints on the hash ring, starting at the request's position. oneOf returns a random endpoint of the subset
// that may be used, or nil if there is no such endpoint. If an endpoint is added to the ring, the subsets of most hash
// keys stay the same.
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
