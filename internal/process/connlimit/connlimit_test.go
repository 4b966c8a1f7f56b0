package connlimit_test

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/connlimit"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// kind is the state of a connection and the time since its last activity.
type kind struct {
	state  connlimit.State
	silent time.Duration
}

var busy = kind{connlimit.Busy, 0}

func idle(silent time.Duration) kind { return kind{connlimit.Idle, silent} }

// connection is an occupant that leaves its place when it is ended, unless stays is set.
type connection struct {
	kind
	stays bool
	place atomic.Pointer[connlimit.Place]
	ended chan struct{}
	once  sync.Once
}

func (c *connection) State() (connlimit.State, time.Duration) { return c.state, c.silent }

func (c *connection) End() {
	if place := c.place.Load(); !c.stays && c.state != connlimit.Busy && place != nil {
		place.Leave()
	}
	c.once.Do(func() { close(c.ended) })
}

// ends waits until End is called.
func (c *connection) ends(t *testing.T) {
	t.Helper()
	fixture.Receive(t, "the end of a connection", c.ended)
}

// isEnded reports whether End was called.
func (c *connection) isEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// limiterOf returns a limiter for the given number of connections, which client addresses share like the connections of
// HTTP clients.
func limiterOf(limit int64) *connlimit.Limiter {
	return connlimit.New(func() *budget.Budget {
		b := budget.ClientBudget()
		b.SetLimit(limit)
		return b
	})
}

func clientAt(address string) connlimit.Client {
	return connlimit.Client{Address: connlimit.AddressOf(netip.MustParseAddr(address))}
}

// enter adds a connection. It reports whether there was room.
func enter(l *connlimit.Limiter, from connlimit.Client, k kind) (*connection, bool) {
	c := &connection{kind: k, ended: make(chan struct{})}
	place := l.Enter(from, c)
	c.place.Store(place)
	return c, place != nil
}

// mustEnter adds connections and fails the test if there is no room.
func mustEnter(t *testing.T, l *connlimit.Limiter, count int, from connlimit.Client, k kind) (all []*connection) {
	t.Helper()
	for i := range count {
		c, ok := enter(l, from, k)
		if !ok {
			t.Fatalf("there is no room for connection %d", i)
		}
		all = append(all, c)
	}
	return all
}

// TestClientsAreBounded checks that each new connection near the limit ends an idle one, that new connections are
// refused at the limit while all others are busy, and that there is room again when one has ended.
func TestClientsAreBounded(t *testing.T) {
	l, proxy := limiterOf(32), connlimit.Client{Address: "proxy", Exempt: true}
	all := mustEnter(t, l, 30, proxy, busy)
	waits, ok := enter(l, proxy, idle(time.Second))
	if !ok || waits.isEnded() {
		t.Fatal("connection 31 of 32 finds no room, or ends")
	}
	mustEnter(t, l, 1, proxy, busy)
	waits.ends(t)
	fixture.Eventually(t, "the place of the idle one", func() error {
		if open := l.Figures().Used; open != 31 {
			return fmt.Errorf("%d are open", open)
		}
		return nil
	})
	mustEnter(t, l, 1, proxy, busy)
	if _, ok := enter(l, proxy, busy); ok {
		t.Error("connection 33 of 32 comes in")
	}
	want := connlimit.Figures{Usage: budget.Usage{Used: 32, Limit: 32, Refused: 1}, Accepted: 34, Ended: 1}
	if f := l.Figures(); f != want {
		t.Errorf("the figures are %+v, want %+v", f, want)
	}
	all[0].place.Load().Leave()
	mustEnter(t, l, 1, proxy, busy)
}

// TestShareOfAnAddress checks that the connections of one address leave room for every other address, even if none of
// them can be ended. All addresses of an IPv6 /64 network share one account, and so do both forms of an IPv4 address.
func TestShareOfAnAddress(t *testing.T) {
	for name, spell := range map[string]func(i int) string{
		"IPv4":           func(int) string { return "192.0.2.1" },
		"IPv4 in IPv6":   func(i int) string { return [2]string{"192.0.2.1", "::ffff:192.0.2.1"}[i%2] },
		"a /64 of IPv6":  func(i int) string { return fmt.Sprintf("2001:db8::%x", i+1) },
		"zones of links": func(i int) string { return fmt.Sprintf("fe80::1%%eth%d", i) },
	} {
		t.Run(name, func(t *testing.T) {
			l, got := limiterOf(100), 0
			for i := range 100 {
				if _, ok := enter(l, clientAt(spell(i)), busy); !ok {
					break
				}
				got++
			}
			if got < 80 || got > 90 {
				t.Errorf("one address alone gets %d of 100", got)
			}
			for i := range 10 {
				mustEnter(t, l, 1, clientAt(fmt.Sprintf("198.51.100.%d", i)), busy)
			}
			if f := l.Figures(); f.RefusedByAddress != 1 {
				t.Errorf("%d connections are refused because of their address", f.RefusedByAddress)
			}
		})
	}
}

// TestOwnConnectionEndsFirst checks that a new connection from an address that has used up its share replaces an idle
// connection of the same address. Idle connections of addresses with fewer connections stay.
func TestOwnConnectionEndsFirst(t *testing.T) {
	l := limiterOf(100)
	other := mustEnter(t, l, 5, clientAt("198.51.100.1"), idle(time.Hour))
	mustEnter(t, l, 50, clientAt("192.0.2.1"), busy)
	own := mustEnter(t, l, 20, clientAt("192.0.2.1"), idle(time.Second))
	for range 30 {
		mustEnter(t, l, 1, clientAt("192.0.2.1"), busy)
	}
	ended := 0
	for _, c := range own {
		if c.isEnded() {
			ended++
		}
	}
	if ended == 0 || ended == len(own) {
		t.Errorf("%d of %d idle connections of the address end", ended, len(own))
	}
	for _, c := range other {
		if c.isEnded() {
			t.Error("an idle connection of another address ends")
		}
	}
}

// TestExemptProxies checks that a proxy may use all connections, that idle connections of clients are ended before
// connections of the proxy, and that a connection is charged to its client once the proxy has named it.
func TestExemptProxies(t *testing.T) {
	l, proxy, client := limiterOf(64), connlimit.Client{Address: "proxy", Exempt: true}, clientAt("192.0.2.1")
	first := mustEnter(t, l, 2, client, idle(time.Second))
	own := mustEnter(t, l, 58, proxy, idle(time.Hour))
	mustEnter(t, l, len(first), proxy, busy)
	for _, c := range first {
		c.ends(t)
	}
	for _, c := range own {
		if c.isEnded() {
			t.Fatal("an idle connection of the proxy ends before those of a client")
		}
	}
	l = limiterOf(64)
	all := mustEnter(t, l, 60, proxy, busy)
	moved := 0
	for _, c := range all {
		if !c.place.Load().Move(client) {
			break
		}
		moved++
	}
	if moved == 0 || moved == len(all) {
		t.Errorf("%d of %d connections count for one client", moved, len(all))
	}
	for _, c := range all {
		c.place.Load().Leave()
	}
	if f := l.Figures(); f.Used != 0 || f.RefusedByAddress != 1 {
		t.Errorf("the figures are %+v in the end", f)
	}
}

// TestEndedConnection checks which connection is ended for a new one.
func TestEndedConnection(t *testing.T) {
	type one struct {
		address string
		kind
	}
	stalled := kind{connlimit.Stalled, time.Minute}
	const a, b = "192.0.2.1", "192.0.2.2"
	for name, c := range map[string]struct {
		others []one
		ends   one
	}{
		"the address with more":  {[]one{{a, busy}, {b, idle(time.Hour)}}, one{a, stalled}},
		"idle before stalled":    {[]one{{a, stalled}}, one{a, idle(time.Second)}},
		"stalled before busy":    {[]one{{a, busy}}, one{a, stalled}},
		"the longest silence":    {[]one{{a, idle(time.Second)}, {a, idle(time.Minute)}}, one{a, idle(time.Hour)}},
		"a busy one as the last": {[]one{{b, idle(time.Millisecond)}}, one{a, busy}},
	} {
		t.Run(name, func(t *testing.T) {
			l, proxy := limiterOf(32), connlimit.Client{Exempt: true}
			for range 30 - len(c.others) - 1 {
				if l.Enter(proxy, nil) == nil {
					t.Fatal("there is no room")
				}
			}
			var stay []*connection
			for _, o := range c.others {
				stay = append(stay, mustEnter(t, l, 1, clientAt(o.address), o.kind)...)
			}
			ends := mustEnter(t, l, 1, clientAt(c.ends.address), c.ends.kind)[0]
			mustEnter(t, l, 1, proxy, busy)
			ends.ends(t)
			for i, s := range stay {
				if s.isEnded() {
					t.Errorf("%+v ends", c.others[i])
				}
			}
		})
	}
}

// TestPlacesAtOnce checks that no unit of the budget is lost or taken twice while many goroutines add, move and remove
// connections.
func TestPlacesAtOnce(t *testing.T) {
	l, done := limiterOf(40), make(chan struct{})
	const goroutines = 16
	for i := range goroutines {
		go func() {
			defer func() { done <- struct{}{} }()
			for j := range 300 {
				k := kind{connlimit.State(j % 3), time.Minute}
				c := &connection{kind: k, stays: true, ended: make(chan struct{})}
				place := l.Enter(clientAt(fmt.Sprintf("192.0.2.%d", (i+j)%5)), c)
				if place == nil {
					continue
				}
				_ = place.Move(clientAt(fmt.Sprintf("198.51.100.%d", j%7)))
				place.Occupy(nil)
				place.Leave()
			}
		}()
	}
	for range goroutines {
		fixture.Receive(t, "the end of a goroutine", done)
	}
	if f := l.Figures(); f.Used != 0 || f.Accepted != goroutines*300 {
		t.Errorf("the figures are %+v in the end", f)
	}
}
