package proxy

import (
	"crypto/tls"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// connected returns a connection for the pool and the endpoint's side of it.
func connected(t *testing.T, listener net.Listener) (*conn, net.Conn) {
	t.Helper()
	socket, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	other, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close(); other.Close() })
	c := newConn(socket, key{address: listener.Addr().String()})
	c.buffer = small.Get()
	return c, other
}

func TestSweep(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address, p := key{address: listener.Addr().String()}, NewPool(nil)
	defer p.Close()
	first, _ := connected(t, listener)
	closed, end := connected(t, listener)
	last, _ := connected(t, listener)
	for _, c := range []*conn{first, closed, last} {
		p.keep(c)
	}
	end.Close()
	for closed.quiet() {
		runtime.Gosched() // The end is on its way.
	}
	fresh, _ := connected(t, listener)

	p.sweep(time.Now().Add(sweepPeriod))
	p.keep(fresh)
	for i, want := range []*conn{fresh, last, first, nil} {
		if got := p.take(address); got != want {
			t.Errorf("taken as number %d: another connection", i)
		}
	}

	first.buffer = small.Get()
	p.keep(first)
	p.sweep(time.Now().Add(defaultIdleTimeout))
	if p.take(address) != nil || p.count != 0 || p.idle.Len() != 0 {
		t.Errorf("%d connections are left, in %d lists", p.count, p.idle.Len())
	}
}

func TestConnectionsToRemovedEndpointsAreClosed(t *testing.T) {
	var listeners [2]net.Listener
	for i := range listeners {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		listeners[i] = listener
	}
	p := NewPool(nil)
	defer p.Close()
	p.SetEndpoints(slices.Values([]string{"192.0.2.1:80", listeners[0].Addr().String()}))
	there, _ := connected(t, listeners[0])
	gone, _ := connected(t, listeners[1])
	p.keep(there)
	p.keep(gone)
	used, _ := connected(t, listeners[1])
	p.sweep(time.Now().Add(sweepPeriod))
	if p.take(gone.key) != nil {
		t.Error("a connection is kept to an endpoint that is gone")
	}
	if p.take(there.key) != there {
		t.Error("the connection to an endpoint that is there is gone, too")
	}
	// A request used this connection until now.
	p.keep(used)
	p.sweep(time.Now().Add(2 * sweepPeriod))
	if p.count != 0 || p.idle.Len() != 0 {
		t.Errorf("%d connections are left, in %d lists", p.count, p.idle.Len())
	}
}

func TestThePoolHasLimits(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p := NewPool(nil)
	defer p.Close()
	one, _ := connected(t, listener)
	two, _ := connected(t, listener)
	p.count = maxIdle - 1
	p.keep(one)
	p.keep(two)
	if got := p.take(one.key); got != one || p.take(one.key) != nil {
		t.Error("more connections are kept than allowed")
	}
}

// TestThePoolForgetsAddresses checks that the pool keeps nothing for endpoints that were removed.
func TestThePoolForgetsAddresses(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p := NewPool(nil)
	defer p.Close()
	for _, address := range []string{"gone:1", "stays:1"} {
		c, other := connected(t, listener)
		defer other.Close()
		c.key.address = address
		p.keep(c)
	}
	p.take(key{address: "gone:1"}).close()
	p.sweep(time.Now())
	if p.idle.Has(key{address: "gone:1"}) || p.idle.Len() != 1 {
		t.Errorf("the pool knows %d addresses, and has connections to one", p.idle.Len())
	}
}

// TestConnectionsOfOneWayAreNotAnothers checks that a connection is reused only if all parts of its key match, and that
// connections end when their Secret changes.
func TestConnectionsOfOneWayAreNotAnothers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p := NewPool(nil)
	defer p.Close()
	one, two := newTLSClient(&tls.Config{}, 1, time.Minute), newTLSClient(&tls.Config{}, 1, time.Minute)
	c, _ := connected(t, listener)
	c.key.secured = one
	p.keep(c)
	for _, other := range []*tlsClient{nil, two, p.defaultClient.Load()} {
		if p.take(key{address: c.key.address, secured: other}) != nil {
			t.Error("the connection of another way is taken")
		}
	}
	if p.take(key{namespace: "b", address: c.key.address, secured: one}) != nil {
		t.Error("the connection of another namespace is taken")
	}
	if p.take(c.key) != c {
		t.Error("its own connection is not found")
	}
	c.buffer = small.Get()
	p.keep(c)
	p.retire(one)
	if p.count != 0 || p.take(c.key) != nil {
		t.Error("a connection outlives its generation")
	}
	// A request used this connection until now.
	used, _ := connected(t, listener)
	used.key.secured = one
	if p.keep(used); p.count != 0 {
		t.Error("a connection is kept of a generation that has ended")
	}
}

// BenchmarkGeneration measures the look-up of the tlsClient for requests to endpoints with TLS or gRPC, with many
// goroutines.
func BenchmarkGeneration(b *testing.B) {
	p := NewPool(nil)
	defer p.Close()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if r := (&request{pool: p, protocol: ir.HTTPS}); r.chooseTLSClient(nil) != nil || r.tlsClient == nil {
				b.Error("the request has no TLS client")
			}
		}
	})
}

// TestTenant22IdleConnections checks that the idle connections of one namespace leave room for another namespace.
func TestTenant22IdleConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p := NewPool(nil)
	defer p.Close()
	// Add as many connections of b as allowed. Only the counts change.
	for p.hasRoom("b") {
		p.addIdle(key{namespace: "b"}, 1)
	}
	defer p.addIdle(key{namespace: "b"}, -p.byNamespace["b"])
	if p.count < maxIdle/2 || p.count >= maxIdle {
		t.Errorf("one namespace alone has %d of %d", p.count, maxIdle)
	}
	c, _ := connected(t, listener)
	c.key.namespace = "a"
	p.keep(c)
	if p.take(c.key) != c {
		t.Error("there is no room for another namespace")
	}
}
