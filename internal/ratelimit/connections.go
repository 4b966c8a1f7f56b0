package ratelimit

import "sync"

// Connections is a zone that counts requests under way, as nginx counts connections. It is for any goroutine, and holds no more clients than
// have a request under way.
type Connections struct {
	shards [shards]struct {
		sync.Mutex
		counts map[Key]int
	}
}

// Enter counts a request of a client until Leave. It returns false, and counts nothing, if the client has as many already.
func (z *Connections) Enter(key Key, most int) bool {
	s := &z.shards[key.hash()%shards]
	s.Lock()
	defer s.Unlock()
	if s.counts[key] >= most {
		return false
	}
	if s.counts == nil {
		s.counts = map[Key]int{}
	}
	s.counts[key]++
	return true
}

// Leave ends what Enter has counted.
func (z *Connections) Leave(key Key) {
	s := &z.shards[key.hash()%shards]
	s.Lock()
	defer s.Unlock()
	if s.counts[key]--; s.counts[key] == 0 {
		delete(s.counts, key)
	}
	if len(s.counts) == 0 {
		// A map keeps the memory of the most entries that it ever had.
		s.counts = nil
	}
}
