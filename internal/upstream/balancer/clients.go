package balancer

import (
	"container/list"
	"strings"
	"sync"
	"time"
)

const (
	clientShards = 16
	// maxClients is the maximum number of clients per backend whose endpoints are remembered. When it is reached, the
	// client that has sent no request for the longest time is forgotten.
	maxClients = 64 << 10
)

// clients remembers which endpoint each client address uses, for the session affinity of a Service. A hash of the
// address would not be enough: when an endpoint is added, each client must stay at its endpoint until the timeout after
// its last request has passed.
type clients struct{ shards [clientShards]clientShard }

type clientShard struct {
	mu sync.Mutex
	// byAddress maps the address of each client to the client's element in recent. The list recent contains a *client
	// for each client, and the client that sent the latest request comes first.
	byAddress map[string]*list.Element
	recent    list.List
}

type client struct {
	address  string
	endpoint *Endpoint
	last     int64
}

func (c *clients) shard(address string) *clientShard { return &c.shards[hash(address)%clientShards] }

// get returns the endpoint of a client and restarts the client's timeout. It returns nil if the client is unknown or
// the timeout since its last request has passed.
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

// put sets the endpoint of a client and starts the client's timeout.
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
	// Clone the address: it may be part of a longer string, which would stay in memory as long as the address.
	address = strings.Clone(address)
	s.byAddress[address] = s.recent.PushFront(&client{address: address, endpoint: e, last: now})
}

// makeRoom is called before a client is added to s, which holds a part of a backend's clients. It removes up to two
// clients whose timeout has passed, so that expired clients are removed faster than new ones are added. If s is still
// full, it removes the client that has sent no request for the longest time.
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
