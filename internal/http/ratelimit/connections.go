package ratelimit

import "sync"

// Connections limits the concurrent requests of each client of a zone, as nginx's limit_conn does. It is safe for
// concurrent use. It only stores clients that have a request in flight.
type Connections struct {
	shards [shards]struct {
		sync.Mutex
		counts map[Key]int
	}
}

// Enter counts a request of a client until Leave is called. It returns false, and does not count the request, if the
// client already has limit requests.
func (z *Connections) Enter(key Key, limit int) bool {
	s := &z.shards[key.hash()%shards]
	s.Lock()
	defer s.Unlock()
	if s.counts[key] >= limit {
		return false
	}
	if s.counts == nil {
		s.counts = map[Key]int{}
	}
	s.counts[key]++
	return true
}

// Leave ends a request that Enter has counted.
func (z *Connections) Leave(key Key) {
	s := &z.shards[key.hash()%shards]
	s.Lock()
	defer s.Unlock()
	if s.counts[key]--; s.counts[key] == 0 {
		delete(s.counts, key)
	}
	if len(s.counts) == 0 {
		// A map never releases the memory of its largest size, so an empty map is dropped.
		s.counts = nil
	}
}
