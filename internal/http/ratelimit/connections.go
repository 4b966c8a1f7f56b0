package ratelimit

import "sync"

// Connections limits the number of concurrent requests of each client, like a zone of nginx's limit_conn. It only
// stores clients that have requests in flight. It is safe for concurrent use.
type Connections struct {
	shards [shards]struct {
		sync.Mutex
		counts map[Key]int
	}
}

// Enter counts a request of a client as in flight until Leave is called. If the client already has limit requests in
// flight, Enter returns false and does not count the request.
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

// Leave removes a request that Enter has counted. It must be called once for each call of Enter that returned true.
func (z *Connections) Leave(key Key) {
	s := &z.shards[key.hash()%shards]
	s.Lock()
	defer s.Unlock()
	if s.counts[key]--; s.counts[key] == 0 {
		delete(s.counts, key)
	}
	if len(s.counts) == 0 {
		// A map does not shrink when entries are deleted, so release an empty map.
		s.counts = nil
	}
}
