// Package connlimit limits the connections of clients: their total number, and the share of each client address. When
// the limit is reached, a new connection replaces an idle or stalled connection.
package connlimit

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/process/budget"
)

// State is the activity of a connection.
type State int

// The states. Idle connections are the first to be ended, and busy connections the last.
const (
	// Busy is the state of a connection with a request in progress.
	Busy State = iota
	// Stalled is the state of a connection whose requests have neither received nor sent data for StallTime.
	Stalled
	// Idle is the state of a connection that waits for the client's first byte or for the next request.
	Idle
)

// StallTime is how long no request of a connection may receive or send data before the connection counts as stalled.
const StallTime = 10 * time.Second

// Occupant is implemented by the server that currently handles a connection. The Limiter uses it to query the state of
// the connection and to close it.
type Occupant interface {
	// State returns the state of the connection and the time since its last activity. It must not block.
	State() (state State, silent time.Duration)
	// End closes the connection. If the connection is busy, End only asks its client to close it, and its requests
	// continue. End is called on its own goroutine, and may be called more than once.
	End()
}

// Limiter counts connections and limits their number. It is safe for concurrent use.
type Limiter struct {
	budget func() *budget.Budget

	accepted, refused, refusedByAddress, ended atomic.Int64
	// waiting is the number of goroutines that wait for the channel gone, which is closed when the next connection
	// ends.
	waiting atomic.Int64

	mu     sync.Mutex
	gone   chan struct{}
	places []*Place
	// ending is the number of connections that are being ended to make room for new connections.
	ending int
}

// New returns a limiter whose budget counts connections: each connection takes one unit. newBudget is called when the
// budget is first needed, so the limits that it depends on may change until then.
func New(newBudget func() *budget.Budget) *Limiter {
	return &Limiter{budget: sync.OnceValue(newBudget), gone: make(chan struct{})}
}

// Address identifies a client in the budget, by its IP address. For IPv6 it is the client's /64 network, since a client
// can choose any address in this network.
type Address string

// AddressOf returns the Address for an IP address. It is empty if ip is not valid, as for a Unix socket.
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

// Client is the client of a connection.
type Client struct {
	Address Address
	// Exempt is true for a proxy, which holds connections of many clients. The limit for one client address does not
	// apply to a proxy, and its connections are ended last.
	Exempt bool
}

// Place represents one connection in its Limiter, from accept until the connection has ended.
type Place struct {
	limiter *Limiter

	// The fields below are guarded by the limiter's lock. index is the position in Limiter.places. share is nil if the
	// client is exempt or has no address. held is true while the connection holds its unit of the budget. occupant is
	// nil while the connection cannot be ended. endCalled is true after Occupant.End was called. ending is true if the
	// connection was not busy at that time, so that it is about to end.
	index             int
	client            Client
	share             *budget.Share
	held              bool
	occupant          Occupant
	endCalled, ending bool
}

// nearly defines when the limit is almost reached: if less than 1/nearly of it is free, each new connection causes an
// idle or stalled connection to be closed, as in nginx.
const nearly = 16

// Enter counts a new connection until Place.Leave is called. It returns nil if the limit is reached; the caller then
// has to close the connection. Enter may wait up to a quarter of a second until another connection has ended.
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

// settle counts the connection of p towards the limits for client c. It returns false if a limit is reached.
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

// try reserves a unit of the budget for one connection: in the share of the client, or in the whole budget if share is
// nil. It does not wait, and returns false if no unit is available.
func (l *Limiter) try(share *budget.Share) bool {
	if share == nil {
		return l.budget().Take(1)
	}
	return share.Take(1)
}

// patience is the maximum time that a new connection waits for another connection to end.
const patience = 250 * time.Millisecond

// take reserves a unit of the budget for a new connection, like try. If no unit is available, it ends a connection of
// the same client, or of a client with at least as many connections, and waits until a connection has ended. It returns
// false if there is still no unit available.
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

// isFull reports whether the maximum number of connections is reached, so that no client can open another one.
func (l *Limiter) isFull() bool {
	b := l.budget()
	return b.Used() >= b.Limit()-1
}

// isEnding reports whether the maximum number of connections is reached, but a connection is about to end.
func (l *Limiter) isEnding() bool {
	_, ending := l.nextEnd()
	return ending && l.isFull()
}

// againEnded is the maximum number of additional connections that are ended for one new connection, in case other new
// connections take the place of the ended ones.
const againEnded = 3

// await reserves a unit of the budget for a new connection as soon as another connection has ended. gone is the channel
// that nextEnd has returned. await returns false if it could not reserve a unit before the time patience has passed.
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

// nextEnd returns a channel that is closed when the next connection has ended. ending reports whether any connection is
// about to end.
func (l *Limiter) nextEnd() (gone <-chan struct{}, ending bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone, l.ending > 0
}

// Occupy must be called when another server takes over the connection. It sets the Occupant, through which the limiter
// can end the connection. If o is nil, the limiter cannot end the connection.
func (p *Place) Occupy(o Occupant) {
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	p.occupant = o
}

// Address returns the address of the client for which the connection is currently counted.
func (p *Place) Address() Address {
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	return p.client.Address
}

// Move makes the connection count towards the limit for another client, such as the client in a PROXY protocol header.
// It returns false if the limit is reached; the caller then has to close the connection, and still has to call Leave.
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

// giveBack returns the unit of the connection to the budget. The caller must hold the limiter's lock.
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

// Leave stops counting the connection. It must be called once, when the connection has ended.
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

// Figures holds the counters of a limiter.
type Figures struct {
	// Usage.Used is the number of open connections. Usage.Refused is the number of connections that were refused
	// because a limit was reached.
	budget.Usage
	// Accepted is the number of connections accepted so far, including connections that were then refused.
	Accepted int64
	// RefusedByAddress is the number of connections that were refused because of the limit for their client address,
	// although other clients could still connect.
	RefusedByAddress int64
	// Ended is the number of connections that were ended to make room for new connections.
	Ended int64
}

// Figures returns the current counters.
func (l *Limiter) Figures() Figures {
	f := Figures{
		Usage: l.budget().Usage(), Accepted: l.accepted.Load(), RefusedByAddress: l.refusedByAddress.Load(),
		Ended: l.ended.Load(),
	}
	f.Refused = l.refused.Load()
	return f
}
