package l4app

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// shared returns a port with two backends: a with the given weight, which is also the fallback, and b with weight 1.
func shared(t testing.TB, protocol ir.Protocol, a int) *ir.StreamRoute {
	t.Helper()
	r := route(protocol, freePort(t), "a")
	r.Backends[0].Weight, r.Backends[0].Fallback = a, true
	r.Backends = append(r.Backends, ir.WeightedBackend{Backend: route(protocol, 1, "b").Backends[0].Backend, Weight: 1})
	return r
}

// expectShares opens connections, asks each endpoint for its name, and checks the shares of a and b within 1 % of all
// connections.
func expectShares(t *testing.T, r *ir.StreamRoute, connections, a, b int) {
	t.Helper()
	counts := map[string]int{}
	for range connections {
		client := dial(t, r)
		if r.Protocol == ir.UDP {
			send(t, client, "x")
		}
		name := make([]byte, 1)
		n, _ := client.Read(name)
		counts[string(name[:n])]++
		client.Close()
	}
	t.Logf("%d connections: %v", connections, counts)
	for name, want := range map[string]int{"a": a, "b": b} {
		if off := counts[name] - want; max(off, -off) > connections/100 {
			t.Errorf("%s has got %d of %d connections, want %d; all are %v", name, counts[name],
				connections, want, counts)
		}
	}
}

func TestConnectionsAreShared(t *testing.T) {
	w := newWorld(t)
	r := shared(t, ir.TCP, 3)
	w.Endpoints.Set(r.Backends[1].Backend.ID, []ir.Endpoint{{Address: named(t, "b")}})
	w.set(r, named(t, "a"))
	expectShares(t, r, 1000, 750, 250)
	// The fallback gets the connections for b. If the fallback itself has no endpoints, its connections get none.
	w.Endpoints.Set(r.Backends[1].Backend.ID, nil)
	expectShares(t, r, 100, 100, 0)
	w.Endpoints.Set(r.Backends[1].Backend.ID, []ir.Endpoint{{Address: named(t, "b")}})
	w.endpoints(r)
	expectShares(t, r, 100, 0, 25)
}

func TestSessionsAreShared(t *testing.T) {
	w := newWorld(t)
	r := shared(t, ir.UDP, 3)
	w.Endpoints.Set(r.Backends[1].Backend.ID,
		[]ir.Endpoint{{Address: packetBackend(t, "b")}, {Address: packetBackend(t, "b")}})
	w.set(r, packetBackend(t, "a"), packetBackend(t, "a"))
	expectShares(t, r, 400, 300, 100)
}

// TestSessionStaysWithItsBackend checks that a client keeps its backend, even if the endpoints change, as long as the
// backend has endpoints and belongs to the port.
func TestSessionStaysWithItsBackend(t *testing.T) {
	w := newWorld(t)
	r := shared(t, ir.UDP, 0)
	b := func(addresses ...string) {
		var list []ir.Endpoint
		for _, address := range addresses {
			list = append(list, ir.Endpoint{Address: address})
		}
		w.Endpoints.Set(r.Backends[1].Backend.ID, list)
	}
	b(packetBackend(t, "b"))
	w.set(r, packetBackend(t, "a"))
	client := dial(t, r)
	exchange(t, client, []byte("1"), "b1")
	// From now on, new clients do not get b.
	r.Backends[0].Weight, r.Backends[1].Weight = 1, 0
	w.ports.Update(w.ctx, one(r))
	expectShares(t, r, 10, 10, 0)
	exchange(t, client, []byte("2"), "b2")
	b(packetBackend(t, "c"))
	exchange(t, client, []byte("3"), "c3")
	b()
	exchange(t, client, []byte("4"), "a4")
	b(packetBackend(t, "b"))
	exchange(t, client, []byte("5"), "a5")
}

// TestSplitWithoutWeights checks that a port is closed, and does not keep its old handlers, if no backend has a weight.
func TestSplitWithoutWeights(t *testing.T) {
	for _, protocol := range []ir.Protocol{ir.TCP, ir.UDP} {
		w := newWorld(t)
		r := shared(t, protocol, 1)
		w.set(r)
		for _, split := range []string{`[{"backend":"test/a/1"},{"backend":"test/b/1","weight":-1}]`,
			`[{"backend":"test/a/1","fallback":true}]`} {
			port := document.Port{Server: json.RawMessage(`{"listen":["` + string(protocol) + `/127.0.0.1:` +
				strconv.Itoa(int(r.Port)) +
				`"],"routes":[{"handle":[{"handler":"k8singress","split":` + split + `}]}]}`)}
			refused := w.ports.Update(w.ctx, map[string]*document.Port{portName(r): &port})
			if len(refused) != 1 || !strings.Contains(refused[0].Err.Error(), "all weights of the split are zero") {
				t.Fatalf("refused: %v", refused)
			}
			if open := w.ports.Names(); len(open) > 0 {
				t.Errorf("%v are open", open)
			}
		}
	}
}
