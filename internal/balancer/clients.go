package balancer

import (
	"container/list"
	"strings"
	"sync"
	"time"
)

const (
	clientShards = 16
	// maxClients is how many clients of a backend are remembered; the one that was away for the longest time is forgotten.
	maxClients = 64 << 10
)

// clients remembers the endpoint of each client address, for Service session affinity. A hash of the address would not
// do: the time counts from the last request, and no new endpoint moves a client before.
type clients struct{ shards [clientShards]clientShard }

type clientShard struct {
	mu sync.Mutex
	// byAddress finds an element of recent, whose value is a *client; the one that was there last is in front.
	byAddress map[string]*list.Element
	recent    list.List
}

type client struct {
	address  string
	endpoint *Endpoint
	last     int64
}

func (c *clients) shard(address string) *clientShard { return &c.shards[hash(address)%clientShards] }

// get returns the endpoint of a client that was here within the timeout, and counts it as here now. Else it returns nil.
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

// put gives a client an endpoint.
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
	// The address may be part of a longer string.
	address = strings.Clone(address)
	s.byAddress[address] = s.recent.PushFront(&client{address: address, endpoint: e, last: now})
}

// makeRoom drops the oldest clients: a few whose time is over, so that they become fewer again, and one more if need be.
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
