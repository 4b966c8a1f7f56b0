package l4app

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap/zaptest"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/upstream/udp"
)

// newTightWorld returns a world with few file descriptors for all ports together.
func newTightWorld(t *testing.T, descriptors int64) *world {
	t.Helper()
	tables := newTables()
	tables.Budget = budget.New(descriptors)
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	w := &world{t: t, Tables: tables, ports: New(zaptest.NewLogger(t), tables), ctx: ctx}
	t.Cleanup(func() {
		w.ports.Close()
		cancel()
	})
	return w
}

// ownedBy returns a route whose backend belongs to a namespace.
func ownedBy(t *testing.T, namespace string, protocol ir.Protocol) *ir.StreamRoute {
	r := route(protocol, freePort(t), "a")
	r.Backends[0].Backend.ID, r.Backends[0].Backend.Namespace = namespace+"/a/1", namespace
	return r
}

// TestDescriptorsAreShared checks that a namespace with as many connections as possible leaves file descriptors for
// others, and that its descriptors are free again when the connections end.
func TestDescriptorsAreShared(t *testing.T) {
	w := newTightWorld(t, 60)
	greedy, modest := ownedBy(t, "b", ir.TCP), ownedBy(t, "a", ir.TCP)
	w.set(greedy, named(t, "b"))
	w.set(modest, named(t, "a"))
	var open []net.Conn
	for w.failed(greedy, noDescriptors) == 0 {
		conn := dial(t, greedy)
		if n, err := conn.Read(make([]byte, 1)); n == 1 && err == nil {
			open = append(open, conn)
		}
	}
	if len(open) < 10 {
		t.Errorf("it has %d connections", len(open))
	}
	expect(t, dial(t, modest), "a")
	for _, conn := range open {
		conn.Close()
	}
	await(t, "the end of its connections", func() bool { return w.active(greedy) == 0 })
	expect(t, dial(t, greedy), "b")
}

// TestSocketsAreShared checks the same for the clients of UDP ports: a new client replaces another client of its own
// port, and never a client of another port.
func TestSocketsAreShared(t *testing.T) {
	w := newTightWorld(t, 60)
	greedy, modest := ownedBy(t, "b", ir.UDP), ownedBy(t, "a", ir.UDP)
	w.set(greedy, packetBackend(t, "b:"))
	w.set(modest, packetBackend(t, "a:"))
	talks := dial(t, modest)
	exchange(t, talks, []byte("1"), "a:1")
	forge(t, greedy, 0, 1000)
	await(t, "the datagrams", func() bool {
		traffic := trafficOf(w, greedy)
		return traffic.Evicted.Load()+int64(traffic.Lost[udp.NoDescriptors].Load()) > 0
	})
	if n := trafficOf(w, greedy).Sessions.Load(); n < 10 || n > 40 {
		t.Errorf("it has %d sessions", n)
	}
	exchange(t, talks, []byte("2"), "a:2")
	exchange(t, dial(t, modest), []byte("3"), "a:3")
}

// TestLoops checks that a port that leads to itself, or to another port that leads back, stops after a few connections,
// so that one client cannot use up all file descriptors.
func TestLoops(t *testing.T) {
	w := newWorld(t)
	self, there, back := ownedBy(t, "b", ir.TCP), ownedBy(t, "b", ir.TCP), ownedBy(t, "c", ir.TCP)
	there.Backends[0].Backend.ID = "b/there/1"
	at := func(r *ir.StreamRoute) string { return fmt.Sprintf("127.0.0.1:%d", r.Port) }
	w.set(self, at(self))
	w.set(there, at(back))
	w.set(back, at(there))
	before := descriptors(t)
	for range 20 {
		expectEnd(t, dial(t, self))
		expectEnd(t, dial(t, there))
	}
	if n := w.failed(self, loop); n < 20 {
		t.Errorf("%d were counted", n)
	}
	if n := w.failed(there, loop) + w.failed(back, loop); n < 20 {
		t.Errorf("%d of the longer way were counted", n)
	}
	await(t, "the end of the file descriptors", func() bool { return descriptors(t) <= before+2*idlePipes+40 })
}

// TestPacketLoops checks the same for datagrams.
func TestPacketLoops(t *testing.T) {
	w := newWorld(t)
	self := ownedBy(t, "b", ir.UDP)
	w.set(self, fmt.Sprintf("127.0.0.1:%d", self.Port))
	client := dial(t, self)
	for range 10 {
		send(t, client, "x")
	}
	await(t, "the loss", func() bool { return trafficOf(w, self).Lost[udp.Loop].Load() == 10 })
	if n := trafficOf(w, self).Sessions.Load(); n != 1 {
		t.Errorf("there are %d sessions", n)
	}
}
