package balancer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
)

func sticky(change func(*ir.SessionCookie)) *ir.LoadBalancing {
	s := &ir.SessionCookie{Name: "session"}
	if change != nil {
		change(s)
	}
	return &ir.LoadBalancing{SessionCookie: s}
}

func persistent(s *ir.SessionCookie)      { s.Persistent = true }
func changeOnFailure(s *ir.SessionCookie) { s.ChangeOnFailure = true }

var modes = map[string]func(*ir.SessionCookie){"balanced": nil, "persistent": persistent}

// join returns a client with a new session cookie, and its endpoint.
func (w *world) join() (*visitor, *Endpoint) {
	w.t.Helper()
	c := w.pick(&visitor{})
	if c.Cookie == "" || c.Session == nil {
		w.t.Fatal("a new client gets no cookie")
	}
	return &visitor{cookie: c.Cookie}, c.Endpoint
}

func TestSession(t *testing.T) {
	for mode, change := range modes {
		t.Run(mode, func(t *testing.T) {
			w, replica := newWorld(t, sticky(change), 10), newWorld(t, sticky(change), 10)
			count := map[*Endpoint]int{}
			for range 2000 {
				v, own := w.join()
				count[own]++
				if strings.Contains(v.cookie, "10.0.0") || strings.Contains(v.cookie, "shop/") {
					t.Fatalf("the cookie %q tells where it leads", v.cookie)
				}
				for _, b := range []*world{w, replica} {
					if c := b.pick(v); c.Endpoint.Address() != own.Address() || c.Cookie != "" {
						t.Fatalf("a client of %s gets %s and the cookie %q", own.Address(),
							c.Endpoint.Address(), c.Cookie)
					}
				}
			}
			for e, n := range count {
				w.between(e.Address(), n, 100, 300)
			}
		})
	}
}

func TestSessionsWhenEndpointsCome(t *testing.T) {
	for mode, most := range map[string]int{"balanced": 160, "persistent": 0} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, sticky(modes[mode]), 9)
			clients := map[*visitor]*Endpoint{}
			for range 1000 {
				v, own := w.join()
				clients[v] = own
			}
			w.SetEndpoints(addresses(10))
			moved := 0
			for v, own := range clients {
				c := w.pick(v)
				if c.Endpoint != own {
					moved++
				}
				if c.Cookie != "" {
					t.Fatal("the cookie changed")
				}
			}
			w.between("clients that moved", moved, most*2/5, most)
		})
	}
}

func TestSessionOfRemovedEndpoint(t *testing.T) {
	for mode, change := range modes {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, sticky(change), 3)
			v, own := w.join()
			var rest []ir.Endpoint
			for _, e := range addresses(3) {
				if e.Address != own.Address() {
					rest = append(rest, e)
				}
			}
			w.SetEndpoints(rest)
			c := w.pick(v)
			if c.Endpoint == own {
				t.Fatal("an endpoint that has gone was chosen")
			}
			if change != nil && c.Cookie == "" {
				t.Fatal("the client keeps a cookie that leads nowhere")
			}
			if c.Cookie != "" {
				v.cookie = c.Cookie
			}
			if again := w.pick(v); again.Endpoint != c.Endpoint || again.Cookie != "" {
				t.Error("the client does not stay where it went")
			}
		})
	}
}

func TestSessionOfFailedEndpoint(t *testing.T) {
	for mode, change := range modes {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, sticky(change), 5)
			v, own := w.join()
			if c := w.pick(v, own); c.Endpoint == own || c.Cookie != "" {
				t.Fatalf("after a failure: %s, cookie %q; want another endpoint and the same cookie",
					c.Endpoint.Address(), c.Cookie)
			}
			if w.pick(v).Endpoint != own {
				t.Fatal("the next request does not come back")
			}
			w.fail(own, 3)
			other := w.pick(v)
			for range 20 {
				if c := w.pick(v); c.Endpoint != other.Endpoint || c.Endpoint == own || c.Cookie != "" {
					t.Fatal("while its endpoint is ejected, the client does not stay at one other")
				}
			}
			w.pass(time.Second)
			if got := w.request(v, false); got != own.Address() || w.out.Load() != 0 {
				t.Errorf("afterwards the client gets %s", got)
			}
		})
	}
}

func TestChangeOnFailure(t *testing.T) {
	for mode, change := range modes {
		t.Run(mode, func(t *testing.T) {
			lb := sticky(change)
			changeOnFailure(lb.SessionCookie)
			w := newWorld(t, lb, 5)
			v, own := w.join()
			c := w.pick(v, own)
			if c.Endpoint == own || c.Cookie == "" || c.Cookie == v.cookie {
				t.Fatalf("after a failure: %s, cookie %q", c.Endpoint.Address(), c.Cookie)
			}
			v.cookie = c.Cookie
			if again := w.pick(v); again.Endpoint != c.Endpoint || again.Cookie != "" {
				t.Fatal("the client does not stay where it went")
			}
			w.fail(c.Endpoint, 3)
			if moved := w.pick(v); moved.Endpoint == c.Endpoint || moved.Cookie == "" {
				t.Error("a client of an ejected endpoint keeps its cookie")
			}
			w.SetEndpoints(addresses(1))
			if c = w.pick(v); c.Cookie != "" {
				v.cookie = c.Cookie
			}
			if alone := w.pick(v, w.endpoint(0)); alone.Cookie != "" {
				t.Error("where there is no other endpoint, the cookie changes")
			}
		})
	}
}

func TestForeignCookies(t *testing.T) {
	other := New("shop/other/80")
	other.SetPolicy(sticky(persistent))
	other.SetEndpoints(addresses(3))
	foreign, _ := other.Pick(&visitor{}, nil)
	for mode, change := range modes {
		w := newWorld(t, sticky(change), 3)
		tag := w.state.Load().policy.tag
		for _, cookie := range []string{
			"x", "|", "|" + tag, "1700000000.123.4.5|0123456789abcdef", foreign.Cookie,
			strings.Repeat("a", 65) + "|" + tag,
			"\x00|" + tag[1:],
		} {
			if c := w.pick(&visitor{cookie: cookie}); c.Cookie == "" {
				t.Errorf("%s: the cookie %q is taken for one of this backend", mode, cookie)
			}
		}
	}
	w := newWorld(t, sticky(persistent), 3)
	if c := w.pick(&visitor{cookie: "nosuch|" + w.state.Load().policy.tag}); c.Cookie == "" {
		t.Error("a cookie of no endpoint is kept")
	}
}

// TestSessionsStartSlowly checks that not all new clients go to a new endpoint.
func TestSessionsStartSlowly(t *testing.T) {
	for mode, change := range modes {
		lb := sticky(change)
		lb.SlowStart = time.Minute
		w := newWorld(t, lb, 3)
		w.SetEndpoints(addresses(4))
		count := w.counts(4000, &visitor{})
		w.between(mode+": new clients of a new endpoint", count["10.0.0.3:80"], 50, 300)
	}
}

func TestSessionCookieWithoutRequest(t *testing.T) {
	w := newWorld(t, sticky(nil), 3)
	if c := w.pick(nil); c.Cookie != "" || c.Session != nil {
		t.Error("nobody can take the cookie, and there is one")
	}
}

func TestClientIP(t *testing.T) {
	w := newWorld(t, &ir.LoadBalancing{ClientIP: time.Minute}, 5)
	clients := map[*visitor]*Endpoint{}
	for i := range 50 {
		v := &visitor{ip: fmt.Sprint("192.0.2.", i)}
		clients[v] = w.pick(v).Endpoint
	}
	stay := func(when string) {
		t.Helper()
		for v, own := range clients {
			if got := w.pick(v).Endpoint; got != own {
				t.Fatalf("%s: client %s goes from %s to %s", when, v.ip, own.Address(), got.Address())
			}
		}
	}
	w.pass(40 * time.Second)
	stay("40 s after the first request")
	w.pass(40 * time.Second)
	stay("80 s after the first request, 40 s after the last")
	w.SetEndpoints(addresses(50))
	stay("after new endpoints")
	w.SetPolicy(&ir.LoadBalancing{ClientIP: time.Hour})
	w.pass(50 * time.Minute)
	stay("within a longer timeout")
	w.pass(time.Hour)
	moved := 0
	for v, own := range clients {
		if w.pick(v).Endpoint != own {
			moved++
		}
	}
	w.between("clients elsewhere after the timeout", moved, 25, 50)
}

func TestClientIPWithFailingEndpoint(t *testing.T) {
	w, v := newWorld(t, &ir.LoadBalancing{ClientIP: time.Hour}, 5), &visitor{ip: "192.0.2.1"}
	own := w.pick(v).Endpoint
	if w.pick(v, own).Endpoint == own {
		t.Fatal("the endpoint that failed for the request is asked again")
	}
	if w.pick(v).Endpoint != own {
		t.Fatal("one failure ends the session")
	}
	w.fail(own, 3)
	next := w.pick(v).Endpoint
	if next == own {
		t.Fatal("an ejected endpoint is asked")
	}
	w.pass(time.Minute)
	w.counts(5, nil)
	if got := w.pick(v).Endpoint; got != next {
		t.Errorf("the client moves on to %s", got.Address())
	}
	var rest []ir.Endpoint
	for _, e := range addresses(5) {
		if e.Address != next.Address() {
			rest = append(rest, e)
		}
	}
	w.SetEndpoints(rest)
	last := w.pick(v).Endpoint
	for range 20 {
		if got := w.pick(v).Endpoint; got == next || got != last {
			t.Fatal("the client does not stay where it went when its endpoint had gone")
		}
	}
}

func TestClientsAreBounded(t *testing.T) {
	c, e := &clients{}, &Endpoint{}
	size := func() (n int) {
		for i := range c.shards {
			n += len(c.shards[i].byAddress)
		}
		return n
	}
	for i := range 2 * maxClients {
		c.put(fmt.Sprint(i), e, 1, time.Hour)
	}
	if n := size(); n > maxClients || n < maxClients*9/10 {
		t.Errorf("%d clients are remembered, want %d", n, maxClients)
	}
	if c.get("0", 1, time.Hour) != nil || c.get(fmt.Sprint(2*maxClients-1), 1, time.Hour) != e {
		t.Error("it is not the oldest that is forgotten")
	}
	late := int64(2 * time.Hour)
	for i := range maxClients / 2 {
		c.put(fmt.Sprint("new", i), e, late, time.Hour)
	}
	if n := size(); n > maxClients/2+maxClients/10 {
		t.Errorf("%d clients are remembered, most of whose time is over", n)
	}
}
