package l4app

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// readName returns the first byte from a backend, which is its name.
func readName(t *testing.T, r *ir.StreamRoute) string {
	t.Helper()
	name := make([]byte, 1)
	if _, err := io.ReadFull(dial(t, r), name); err != nil {
		t.Fatal(err)
	}
	return string(name)
}

func TestSessionAffinity(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	w.Endpoints.Configure(r.Backends[0].Backend.ID, &ir.LoadBalancing{ClientIP: time.Hour})
	w.set(r, named(t, "a"), named(t, "b"), named(t, "c"), named(t, "d"))
	own := readName(t, r)
	for range 8 {
		if got := readName(t, r); got != own {
			t.Fatalf("the client goes from %s to %s", own, got)
		}
	}
}

// TestUnderWay checks that the endpoint with fewer connections is chosen, and that a connection counts until it ends.
func TestUnderWay(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	w.Endpoints.Configure(r.Backends[0].Backend.ID, &ir.LoadBalancing{Policy: ir.PolicyLeastRequest})
	w.set(r, named(t, "a"), named(t, "b"))
	count := map[string]int{}
	for range 10 {
		count[readName(t, r)]++
	}
	if count["a"] != 5 || count["b"] != 5 {
		t.Errorf("connections are at %v", count)
	}
}

func TestEndedConnectionsAreNotActive(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	w.set(r, named(t, "a"))
	conn := dial(t, r)
	expect(t, conn, "a")
	choice, _ := w.Endpoints.Backend(r.Backends[0].Backend.ID).Pick(nil, nil)
	if n := choice.Endpoint.InFlight(); n != 1 {
		t.Fatalf("%d connections are under way, want 1", n)
	}
	conn.Close()
	await(t, "the end of the connection", func() bool { return choice.Endpoint.InFlight() == 0 })
}

func TestUnavailableEndpointIsEjected(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	w.Endpoints.Configure(r.Backends[0].Backend.ID, &ir.LoadBalancing{EjectAfter: 1})
	down := net.JoinHostPort("127.0.0.1", "1")
	w.set(r, down, named(t, "u"))
	for range 4 {
		if got := readName(t, r); got != "u" {
			t.Fatalf("the client hears %q", got)
		}
	}
	for range 4 {
		if choice, _ := w.Endpoints.Backend(r.Backends[0].Backend.ID).Pick(nil,
			nil); choice.Endpoint.Address() == down {
			t.Fatal("the endpoint that is down is not ejected")
		}
	}
}
