package balancer

import (
	"container/list"
	"strings"
	"sync"
	"time"
)

const (
	clientShards = 16
	// maxClients is the maximum number of remembered clients per backend. When it is reached, the client with the
	// oldest request is forgotten.
	maxClients = 64 << 10
)

// clients maps client addresses to endpoints, for Service session affinity. A hash of the address would not be enough:
// the timeout starts with the last request, and a new endpoint must not move clients before it has passed.
type clients struct{ shards [clientShards]clientShard }

type clientShard struct {
	mu sync.Mutex
	// byAddress maps addresses to elements of recent, whose values are *client. The client with the latest request is
	// at the front.
	byAddress map[string]*list.Element
	recent    list.List
}

type client struct {
	address  string
	endpoint *Endpoint
	last     int64
}

func (c *clients) shard(address string) *clientShard { return &c.shards[hash(address)%clientShards] }

// get returns the endpoint of a client whose last request is within the timeout, and restarts the timeout. Otherwise it
// returns nil.
func (c *clients) get(address string, now int64, timeout time.Duration) *Endpoint {
	s := c.shard(address)
	s.mu.Lock()
	defer s.mu.Unlock()
	element := s.byAddress[address]
	if element == nil {
		return nil
	}
	found := element.Value.(*client)
	if now-found.last >= int64(timeout) {
		s.drop(element)
		return nil
	}
	found.last = now
	s.recent.MoveToFront(element)
	return found.endpoint
}

// put assigns an endpoint to a client.
func (c *clients) put(address string, e *Endpoint, now int64, timeout time.Duration) {
	s := c.shard(address)
	s.mu.Lock()
	defer s.mu.Unlock()
	if element := s.byAddress[address]; element != nil {
		found := element.Value.(*client)
		found.endpoint, found.last = e, now
		s.recent.MoveToFront(element)
		return
	}
	if s.byAddress == nil {
		s.byAddress = map[string]*list.Element{}
	}
	s.makeRoom(now, timeout)
	// Clone the address, because it may be part of a longer string.
	address = strings.Clone(address)
	s.byAddress[address] = s.recent.PushFront(&client{address: address, endpoint: e, last: now})
}

// makeRoom drops at most two expired clients, so that their number shrinks again. If the shard is still full, it drops
// the oldest client.
func (s *clientShard) makeRoom(now int64, timeout time.Duration) {
	for range 2 {
		oldest := s.recent.Back()
		if oldest == nil || now-oldest.Value.(*client).last < int64(timeout) {
			break
		}
		s.drop(oldest)
	}
	if s.recent.Len() >= maxClients/clientShards {
		s.drop(s.recent.Back())
	}
}

func (s *clientShard) drop(element *list.Element) {
	delete(s.byAddress, element.Value.(*client).address)
	s.recent.Remove(element)
}
