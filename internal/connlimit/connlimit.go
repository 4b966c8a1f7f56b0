// Package connlimit limits the connections of clients: their number, and the share of it that one address has. A new
// connection for which there is no room takes the place of one that waits for its client.
package connlimit

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/budget"
)

// State is what a connection does.
type State int

// The states, in the order in which connections are chosen to end.
const (
	// Busy is a connection with a request under way.
	Busy State = iota
	// Stalled is a connection whose requests have been silent in both directions for StallTime.
	Stalled
	// Idle is a connection that waits for the first byte of its client, or for the next request.
	Idle
)

// StallTime is the time without a byte of any request after which a connection counts as stalled.
const StallTime = 10 * time.Second

// Occupant is a connection as its server sees it.
type Occupant interface {
	// State returns what the connection does, and for how long it has been silent. It must not wait.
	State() (state State, silent time.Duration)
	// End closes the connection. A connection that is busy goes on, and asks its client to leave. End is called on a
	// goroutine of its own, and may be called again.
	End()
}

// Limiter counts the connections that have a place. Its methods may be called from any goroutine.
type Limiter struct {
	budget func() *budget.Budget

	accepted, refused, refusedByAddress, ended atomic.Int64
	// waiting is the number of goroutines that wait for gone, which the next connection that ends closes.
	waiting atomic.Int64

	mu     sync.Mutex
	gone   chan struct{}
	places []*Place
	// ending is the number of places whose connections are ending.
	ending int
}

// New returns a limiter for a budget, in which a connection is one unit. newBudget is called for the first connection:
// until then the program may change the limits that the budget depends on.
func New(newBudget func() *budget.Budget) *Limiter {
	return &Limiter{budget: sync.OnceValue(newBudget), gone: make(chan struct{})}
}

// Address is the key of a client in a budget. An IPv6 client is its network of 64 bits, in which it can choose any
// address.
type Address string

// AddressOf returns the key of a client. It is empty if there is no IP address, as for a Unix socket.
func AddressOf(ip netip.Addr) Address {
	switch ip = ip.Unmap(); {
	case ip.Is4():
		four := ip.As4()
		return Address(four[:])
	case ip.Is6():
		six := ip.As16()
		return Address(six[:8])
	}
	return ""
}

// IPOf returns the IP address of a client. It is not valid if there is none, as for a Unix socket.
func IPOf(at net.Addr) netip.Addr {
	switch at := at.(type) {
	case *net.TCPAddr:
		return at.AddrPort().Addr()
	case *net.UDPAddr:
		return at.AddrPort().Addr()
	}
	return netip.Addr{}
}

// Client is the other end of a connection.
type Client struct {
	Address Address
	// Exempt is true for a proxy, which has the connections of many clients. It has no share, and its connections are
	// the last to end.
	Exempt bool
}

// Place is the account of one connection, from accept to its end.
type Place struct {
	limiter *Limiter

	// What follows is guarded by the lock of the limiter. index is the position in places. share is nil if the client
	// is exempt. held is true while the place has its unit of the budget. occupant is nil while the connection cannot
	// be ended. asked is true after End was called, and ending if the connection was not busy then.
	index         int
	client        Client
	share         *budget.Share
	held          bool
	occupant      Occupant
	asked, ending bool
}

// nearly is the part of the limit that is free when connections begin to end for others: a sixteenth, as in nginx.
const nearly = 16

// Enter gives a new connection a place, until Leave. It returns nil, and the caller has to close the connection, if
// there is no room. Enter may wait a short time until another connection has ended.
func (l *Limiter) Enter(c Client, o Occupant) *Place {
	l.accepted.Add(1)
	p := &Place{limiter: l, client: c, occupant: o}
	if !l.settle(p, c) {
		return nil
	}
	b := l.budget()
	if limit := b.Limit(); !b.Unlimited() && b.Used() > limit-limit/nearly {
		l.makeRoom(nil, rest)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p.index = len(l.places)
	l.places = append(l.places, p)
	return p
}

// settle counts a place for a client. It returns false if there is no room.
func (l *Limiter) settle(p *Place, c Client) bool {
	var share *budget.Share
	if !c.Exempt && c.Address != "" {
		share = l.budget().Share(string(c.Address), "")
	}
	held := l.take(share)
	if !held && share != nil {
		share.Leave()
		share = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p.client, p.share, p.held = c, share, held
	return held
}

// try takes one unit of a share, or of the budget if share is nil.
func (l *Limiter) try(share *budget.Share) bool {
	if share == nil {
		return l.budget().Take(1)
	}
	return share.Take(1)
}

// patience is the longest time for which a new connection waits until another one has ended.
const patience = 250 * time.Millisecond

// take takes one unit. Without room it ends a connection of the client itself, or of one that has at least as many, and
// waits for its end.
func (l *Limiter) take(share *budget.Share) bool {
	if l.try(share) {
		return true
	}
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	gone, _ := l.nextEnd()
	if (l.makeRoom(share, 0) || l.isEnding()) && l.await(share, gone) {
		return true
	}
	l.refused.Add(1)
	if !l.isFull() {
		l.refusedByAddress.Add(1)
	}
	return false
}

// isFull reports whether no client has room.
func (l *Limiter) isFull() bool {
	b := l.budget()
	return b.Used() >= b.Limit()-1
}

// isEnding reports whether there is no room for any client, and a connection is ending.
func (l *Limiter) isEnding() bool {
	_, ending := l.nextEnd()
	return ending && l.isFull()
}

// againEnded is how many more connections end for a new one if others take the units of those that have ended.
const againEnded = 3

// await takes one unit as soon as connections have ended. It returns false when patience is over.
func (l *Limiter) await(share *budget.Share, gone <-chan struct{}) bool {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for again := 0; ; again++ {
		select {
		case <-gone:
			gone, _ = l.nextEnd()
		case <-timeout.C:
			return l.try(share)
		}
		if l.try(share) {
			return true
		}
		if again < againEnded {
			l.makeRoom(share, 0)
		}
	}
}

// nextEnd returns a channel that is closed when the next connection has ended, and whether one is ending.
func (l *Limiter) nextEnd() (gone <-chan struct{}, ending bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone, l.ending > 0
}

// Occupy replaces the connection as the limiter sees it, when another server takes it over. Nil means that it cannot be
// ended.
func (p *Place) Occupy(o Occupant) {
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	p.occupant = o
}

// Address returns the address that the connection counts for.
func (p *Place) Address() Address {
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	return p.client.Address
}

// Move counts the connection for another client, such as the one in a PROXY header. It returns false if that client has
// no room: the caller has to close the connection, and to call Leave as always.
func (p *Place) Move(to Client) bool {
	l := p.limiter
	l.mu.Lock()
	if p.client == to {
		l.mu.Unlock()
		return true
	}
	p.giveBack()
	l.mu.Unlock()
	return l.settle(p, to)
}

// giveBack gives the unit of the place back. The caller holds the lock of the limiter.
func (p *Place) giveBack() {
	if !p.held {
		return
	}
	p.held = false
	if p.share == nil {
		p.limiter.budget().Give(1)
		return
	}
	p.share.Give(1)
	p.share.Leave()
	p.share = nil
}

// Leave is called once, when the connection has ended.
func (p *Place) Leave() {
	l := p.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	p.giveBack()
	if p.ending {
		l.ending--
	}
	last := len(l.places) - 1
	l.places[p.index] = l.places[last]
	l.places[p.index].index = p.index
	l.places[last] = nil
	l.places = l.places[:last]
	if l.waiting.Load() > 0 {
		close(l.gone)
		l.gone = make(chan struct{})
	}
}

// Figures are the numbers of a limiter.
type Figures struct {
	// Usage counts connections. Refused is the number of connections that got no place.
	budget.Usage
	// Accepted is the number of connections so far, the refused ones included.
	Accepted int64
	// RefusedByAddress is how many connections were refused although other addresses had room.
	RefusedByAddress int64
	// Ended is the number of connections that were ended to make room for others.
	Ended int64
}

// Figures returns the numbers of this moment.
func (l *Limiter) Figures() Figures {
	f := Figures{
		Usage: l.budget().Usage(), Accepted: l.accepted.Load(), RefusedByAddress: l.refusedByAddress.Load(),
		Ended: l.ended.Load(),
	}
	f.Refused = l.refused.Load()
	return f
}
