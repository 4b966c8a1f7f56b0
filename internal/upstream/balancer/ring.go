package balancer

import (
	"cmp"
	"slices"
)

// pointsPerEndpoint is the number of points that each endpoint has on the hash ring. More points distribute the keys
// more evenly, but use more memory. The number must not depend on the number of endpoints, because changing it moves
// all keys to other endpoints.
const pointsPerEndpoint = 160

// ring is a consistent hash ring. Each endpoint has several points on the ring, and a key belongs to the endpoint with
// the first point at or after the key's position. All replicas of the controller compute the same points. A ring is
// immutable. A nil *ring means that the policy needs no ring.
//
// A ring for a thousand endpoints is large, and a new ring is created for each change of the endpoints. Therefore a
// point contains no pointer: the garbage collector does not have to scan the points.
type ring struct {
	points []point
	// slots holds the endpoints on the ring. A point refers to its endpoint by the index in slots. Unused elements of
	// slots are nil.
	slots []*Endpoint
}

type point struct{ at, slot uint32 }

func newRing(endpoints []*Endpoint) *ring {
	r := &ring{slots: slices.Clone(endpoints), points: make([]point, 0, len(endpoints)*pointsPerEndpoint)}
	for slot := range r.slots {
		r.points = r.appendPoints(r.points, uint32(slot))
	}
	slices.SortFunc(r.points, r.compare)
	return r
}

// The method with returns a copy of the ring that lacks the endpoints that were removed from the backend's list, and
// contains the endpoints in added. It is faster than newRing, because it does not have to sort all points again.
func (r *ring) with(added []*Endpoint) *ring {
	next := &ring{slots: slices.Clone(r.slots)}
	var gone, fresh []point
	var free []uint32
	for slot, e := range r.slots {
		if e != nil && !e.listed.Load() {
			gone = r.appendPoints(gone, uint32(slot))
		}
		if e == nil {
			free = append(free, uint32(slot))
		}
	}
	if len(gone) == 0 && len(added) == 0 {
		return r
	}
	for _, e := range added {
		var slot uint32
		if n := len(free); n > 0 {
			slot, free = free[n-1], free[:n-1]
			next.slots[slot] = e
		} else {
			slot = uint32(len(next.slots))
			next.slots = append(next.slots, e)
		}
		fresh = next.appendPoints(fresh, slot)
	}
	slices.SortFunc(gone, r.compare)
	slices.SortFunc(fresh, next.compare)
	next.points = next.replaced(r.points, gone, fresh)
	for _, p := range gone {
		next.slots[p.slot] = nil
	}
	return next
}

// replaced returns a sorted copy of points, without the points in gone and with the points in fresh. All three lists
// must be sorted. It copies the unchanged points between two changes as a block, which is faster than comparing each
// point.
func (r *ring) replaced(points, gone, fresh []point) []point {
	result := make([]point, 0, len(points)-len(gone)+len(fresh))
	for len(gone) > 0 || len(fresh) > 0 {
		if len(gone) > 0 && (len(fresh) == 0 || r.compare(gone[0], fresh[0]) <= 0) {
			i, _ := slices.BinarySearchFunc(points, gone[0], r.compare)
			result, points, gone = append(result, points[:i]...), points[i+1:], gone[1:]
			continue
		}
		i, _ := slices.BinarySearchFunc(points, fresh[0], r.compare)
		result, points, fresh = append(append(result, points[:i]...), fresh[0]), points[i:], fresh[1:]
	}
	return append(result, points...)
}

// appendPoints appends the points of the endpoint with the given index in r.slots.
func (r *ring) appendPoints(points []point, slot uint32) []point {
	seed := hash(r.slots[slot].address)
	for i := range uint64(pointsPerEndpoint) {
		points = append(points, point{at: position(mix(seed + i*0x9e3779b97f4a7c15)), slot: slot})
	}
	return points
}

// position returns the position on the ring for a hash.
func position(hash uint64) uint32 { return uint32(hash >> 32) }

// compare orders points by position. Points with the same position are ordered by the addresses of their endpoints,
// because the indexes in slots may differ between replicas, but all replicas must use the same order.
func (r *ring) compare(p, q point) int {
	if p.at != q.at {
		return cmp.Compare(p.at, q.at)
	}
	if p.slot == q.slot {
		return 0
	}
	return cmp.Compare(r.slots[p.slot].address, r.slots[q.slot].address)
}

// The method at returns the endpoint of the point with index i.
func (r *ring) at(i int) *Endpoint { return r.slots[r.points[i].slot] }

// find returns the index of the first point at or after the position of a hash, or zero if there is no such point.
func (r *ring) find(hash uint64) int {
	at := position(hash)
	low, high := 0, len(r.points)
	for low < high {
		if middle := int(uint(low+high) >> 1); r.points[middle].at < at {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == len(r.points) {
		return 0
	}
	return low
}

// hash returns the FNV-1a hash of s, passed through mix, because the high bits of FNV-1a depend too little on short
// strings. It uses no random seed, so all replicas compute the same value.
func hash(s string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return mix(h)
}

// mix makes each bit of the result depend on all bits of h. It is the last step of SplitMix64.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
