package balancer

import (
	"cmp"
	"slices"
)

// pointsPerEndpoint is a compromise: more of them share the keys more evenly, and cost memory. It is the same for any number
// of endpoints, because another number would move all keys.
const pointsPerEndpoint = 160

// ring is a consistent hash: a key belongs to the endpoint of the first point at or after its position. All replicas of
// the controller have the same one. It is immutable.
type ring []point

type point struct {
	at       uint64
	endpoint *Endpoint
}

// with returns a ring without the endpoints that are no longer listed, and with those that were added. It takes time for
// a copy, not for a sort.
func (r ring) with(added []*Endpoint) ring {
	next := make(ring, 0, len(r)+len(added)*pointsPerEndpoint)
	for _, p := range r {
		if p.endpoint.listed.Load() {
			next = append(next, p)
		}
	}
	return next.merge(pointsOf(added))
}

func pointsOf(endpoints []*Endpoint) ring {
	points := make(ring, 0, len(endpoints)*pointsPerEndpoint)
	for _, e := range endpoints {
		seed := hash(e.address)
		for i := range uint64(pointsPerEndpoint) {
			points = append(points, point{at: mix(seed + i*0x9e3779b97f4a7c15), endpoint: e})
		}
	}
	slices.SortFunc(points, point.compare)
	return points
}

func (p point) compare(q point) int {
	if c := cmp.Compare(p.at, q.at); c != 0 {
		return c
	}
	return cmp.Compare(p.endpoint.address, q.endpoint.address)
}

// merge adds sorted points to r, which has room for them.
func (r ring) merge(added ring) ring {
	i, j := len(r)-1, len(added)-1
	r = r[:len(r)+len(added)]
	for k := len(r) - 1; j >= 0; k-- {
		if i >= 0 && r[i].compare(added[j]) > 0 {
			r[k] = r[i]
			i--
			continue
		}
		r[k] = added[j]
		j--
	}
	return r
}

// find returns the index of the point that a position belongs to.
func (r ring) find(at uint64) int {
	low, high := 0, len(r)
	for low < high {
		if middle := int(uint(low+high) >> 1); r[middle].at < at {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == len(r) {
		return 0
	}
	return low
}

// hash is FNV-1a, mixed: its own high bits say too little of short strings. It is no secret, and the same everywhere.
func hash(s string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return mix(h)
}

// mix spreads each bit over all of them: the last step of SplitMix64.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
