package l4app

import (
	"maps"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// passed is a passage with a changeable policy, and a listener whose connections it gets.
type passed struct {
	t       *testing.T
	world   *world
	passage *Passage
	policy  atomic.Pointer[ir.StreamPolicy]
	address string
}

// newPassed returns a passage to the endpoints at these addresses.
func newPassed(t *testing.T, policy ir.StreamPolicy, addresses ...string) *passed {
	t.Helper()
	w, p := newWorld(t), &passed{t: t}
	p.world = w
	p.policy.Store(&policy)
	p.passage = w.ports.Passage(&net.TCPAddr{Port: 443},
		func() ir.StreamPolicy { return *p.policy.Load() }, zap.NewNop())
	r := route(ir.TCP, freePort(t), "a")
	// Disable ejection, so that an address where no process listens gets its turn again.
	w.Endpoints.Configure(r.Backends[0].Backend.ID, &ir.LoadBalancing{EjectAfter: -1})
	w.endpoints(r, addresses...)
	p.address = backend(t, func(conn *net.TCPConn) {
		if err := p.passage.Take(conn, []byte("ahead"),
			w.Endpoints.Backend(r.Backends[0].Backend.ID)).Pass(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// connect returns a client whose first bytes have already been read.
func (p *passed) connect() net.Conn {
	p.t.Helper()
	conn, err := net.DialTimeout("tcp", p.address, patience)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		p.t.Fatal(err)
	}
	return conn
}

func (p *passed) failed(f failure) int { return int(p.passage.account.failed[f].Load()) }

// TestPass checks that the passage forwards a connection that another listener has accepted.
func TestPass(t *testing.T) {
	conn := newPassed(t, ir.StreamPolicy{}, named(t, "a")).connect()
	expect(t, conn, "aahead")
	send(t, conn, "more")
	expect(t, conn, "more")
}

// TestPassedMetrics checks that passthrough connections appear in the metrics of their port.
func TestPassedMetrics(t *testing.T) {
	p := newPassed(t, ir.StreamPolicy{IdleTimeout: 8 * time.Second}, named(t, "a"))
	conn := p.connect()
	expect(t, conn, "aahead")
	want := map[string]float64{
		"bytes_total in 443 tcp": 5, "bytes_total out 443 tcp": 6, "connections_active 443 tcp": 1,
		"connections_total 443 tcp": 1,
	}
	for _, reason := range reasons {
		want["failures_total 443 tcp "+reason] = 0
	}
	await(t, "what is counted while it is open", func() bool { return maps.Equal(p.world.metrics(), want) })
	conn.Close()
	want["connections_active 443 tcp"], want["failures_total 443 tcp client_hello"] = 0, 1
	p.passage.CountNoClientHello()
	await(t, "what is counted at the end", func() bool { return maps.Equal(p.world.metrics(), want) })
	// Another listener on the same port continues the counters.
	again := p.world.ports.Passage(&net.TCPAddr{Port: 443}, nil, zap.NewNop())
	again.CountNoClientHello()
	want["failures_total 443 tcp client_hello"] = 2
	if diff := cmp.Diff(want, p.world.metrics()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPassedIdleTimeout checks that a changed policy applies to new connections only.
func TestPassedIdleTimeout(t *testing.T) {
	p := newPassed(t, ir.StreamPolicy{}, named(t, "a"))
	stays := p.connect()
	expect(t, stays, "aahead")
	p.policy.Store(&ir.StreamPolicy{IdleTimeout: time.Second})
	goes := p.connect()
	expect(t, goes, "aahead")
	expectEnd(t, goes)
	await(t, "the count of it", func() bool { return p.failed(idled) == 1 })
	send(t, stays, "still there")
	expect(t, stays, "still there")

	// The other way round: a longer timeout does not apply to open connections.
	p.policy.Store(&ir.StreamPolicy{IdleTimeout: time.Second})
	short := p.connect()
	expect(t, short, "aahead")
	p.policy.Store(&ir.StreamPolicy{})
	expectEnd(t, short)
	await(t, "the count of the second one", func() bool { return p.failed(idled) == 2 })
}

// TestPassedTries checks that the policy limits the number of endpoints that are tried.
func TestPassedTries(t *testing.T) {
	p := newPassed(t, ir.StreamPolicy{Tries: 1}, "127.0.0.1:1", named(t, "a"))
	// The endpoints take turns: every second connection goes to the address where no process listens.
	refused := 0
	for range 4 {
		if n, _ := p.connect().Read(make([]byte, 1)); n == 0 {
			refused++
		}
	}
	p.policy.Store(&ir.StreamPolicy{})
	for range 4 {
		expect(t, p.connect(), "aahead")
	}
	if refused != 2 || p.failed(noEndpoint) != 2 {
		t.Errorf("%d of 4 have found no endpoint, and %d are counted; want 2", refused, p.failed(noEndpoint))
	}
}
