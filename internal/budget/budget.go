// Package budget shares the file descriptors of the process: HTTP always keeps its part, what streams have is shared among namespaces,
// and among the ports of each, and so are the connections to endpoints.
package budget

import (
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// generous is how many times as much an owner may hold as is free. One owner alone gets two thirds of all, two get two fifths each, and
// with any number of them there is room for one more: the dynamic threshold of switches that share a buffer among queues (Choudhury and
// Hahne, 1998). No owner has to be known in advance, and none has to give anything back. In most clusters few namespaces have nearly all
// requests: for endpoints one alone gets seven eighths of all.
const generous, generousForEndpoints = 2, 8

// Budget is a number of file descriptors. Its methods may be called from any goroutine.
type Budget struct {
	most, generous int64
	used           atomic.Int64

	mu     sync.Mutex
	owners map[string]*owner
}

// owner is a namespace. It stays when it holds nothing any more: there are as many as there are namespaces with ports.
type owner struct {
	used  atomic.Int64
	ports map[string]*Share
}

// New returns a budget of a number of descriptors; 0 or less is without a limit.
func New(most int64) *Budget {
	if most <= 0 {
		most = math.MaxInt64 / (2 * generousForEndpoints * generousForEndpoints)
	}
	return &Budget{most: most, generous: generous, owners: map[string]*owner{}}
}

// ForStreams returns the budget of the sockets of all TCP and UDP ports: three eighths of what the system lets the process open. Another
// eighth is ForPipes, and the rest is left to HTTP.
func ForStreams() *Budget { return New(openFiles() * 3 / 8) }

// ForClients is how many connections of HTTP clients there may be at a time; 0 is any number. It is half of what is left to HTTP, so that
// each of them finds a descriptor for its endpoint, and as many as half of the memory has room for, where that has a limit: nobody is to
// have the process killed by connections that do nothing.
func ForClients() int64 {
	files, memory := openFiles()/4, debug.SetMemoryLimit(-1)
	switch room := memory / (2 * bytesOfClient); {
	case memory == math.MaxInt64:
		return files
	case files == 0:
		return room
	default:
		return min(files, room)
	}
}

// bytesOfClient is what an idle connection with TLS takes: HTTP/2 30 KB, HTTP/1.1 45 KB and HTTP/3 60 KB, as the process grows.
const bytesOfClient = 32 << 10

// ForEndpoints returns the budget of the connections to the endpoints of HTTP clients. There is more of them than of clients: HTTP/2 and
// HTTP/3 have many requests on one connection, and idle ones are kept. It is the other half of what is left to HTTP, but for an eighth,
// which the process needs itself.
func ForEndpoints() *Budget {
	b := New(openFiles() * 7 / 32)
	b.generous = generousForEndpoints
	return b
}

// ForPipes returns the budget of the pipes in which bytes are between two sockets.
func ForPipes() *Budget { return New(openFiles() / 8) }

// Most is how many there are, Used how many of them are taken.
func (b *Budget) Most() int64 { return b.most }

// Used is how many are taken.
func (b *Budget) Used() int64 { return b.used.Load() }

// Share is what one port has of the budget, for one namespace.
type Share struct {
	budget *Budget
	owner  *owner
	used   atomic.Int64
}

// Share returns that of a port of a namespace. It is the same one each time.
func (b *Budget) Share(namespace, port string) *Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.owners[namespace]
	if o == nil {
		o = &owner{ports: map[string]*Share{}}
		b.owners[namespace] = o
	}
	s := o.ports[port]
	if s == nil {
		s = &Share{budget: b, owner: o}
		o.ports[port] = s
	}
	return s
}

// Take takes n descriptors, until Give. It returns false, and takes none, where the namespace has its part already, or the port has its
// part of that. Of calls at the same time, all may be refused that would not fit together.
func (s *Share) Take(n int64) bool {
	all, own, port := s.budget.used.Add(n), s.owner.used.Add(n), s.used.Add(n)
	most := s.budget.generous * (s.budget.most - all)
	if own <= most && port <= s.budget.generous*(most-own) {
		return true
	}
	s.Give(n)
	return false
}

// Give gives back what Take has taken.
func (s *Share) Give(n int64) {
	s.used.Add(-n)
	s.owner.used.Add(-n)
	s.budget.used.Add(-n)
}
