package l4app

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// impatient returns a route with a short idle timeout.
func impatient(t *testing.T) *ir.StreamRoute {
	r := route(ir.TCP, freePort(t), "a")
	r.Policy.IdleTimeout = 100 * time.Millisecond
	return r
}

// silent starts an endpoint that accepts connections, but neither reads nor writes.
func silent(t *testing.T) string {
	return backend(t, func(*net.TCPConn) { <-t.Context().Done() })
}

func TestSilentEndpoint(t *testing.T) {
	w := newWorld(t)
	r := impatient(t)
	w.set(r, silent(t))
	conn := dial(t, r)
	send(t, conn, "anybody there?")
	expectEnd(t, conn)
	await(t, "the end of the connection", func() bool { return w.failed(r, idled) == 1 && w.active(r) == 0 })
}

func TestClientNeverReads(t *testing.T) {
	w := newWorld(t)
	r := impatient(t)
	ended := make(chan error, 1)
	w.set(r, backend(t, func(conn *net.TCPConn) {
		_, err := io.Copy(conn, zeros{})
		ended <- err
	}))
	dial(t, r)
	if err := fixture.Receive(t, "the end at the endpoint", ended); !errors.Is(err, syscall.ECONNRESET) &&
		!errors.Is(err, syscall.EPIPE) {
		t.Errorf("the endpoint got %v", err)
	}
	await(t, "the end of the connection", func() bool { return w.failed(r, idled) == 1 && w.active(r) == 0 })
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// TestOneWayKeepsAConnectionOpen checks that a connection is not idle while bytes move in one direction.
func TestOneWayKeepsAConnectionOpen(t *testing.T) {
	w := newWorld(t)
	r := impatient(t)
	// Use a longer timeout, because a busy machine may pause for a while.
	r.Policy.IdleTimeout = time.Second
	stop := make(chan struct{})
	w.set(r, backend(t, func(conn *net.TCPConn) {
		tick := time.NewTicker(r.Policy.IdleTimeout / 20)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				_, _ = io.WriteString(conn, "!")
				return
			case <-tick.C:
				_, _ = io.WriteString(conn, ".")
			}
		}
	}))
	conn := dial(t, r)
	expect(t, conn, strings.Repeat(".", 30))
	close(stop)
	rest, err := io.ReadAll(conn)
	if err != nil || len(rest) == 0 || rest[len(rest)-1] != '!' {
		t.Errorf("the client heard %q at last, %v", rest, err)
	}
}

func TestConnectionsBeyondTheLimitAreClosed(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	r.Policy.MaxConnections = 2
	w.set(r, named(t, "a"))
	first, second := dial(t, r), dial(t, r)
	expect(t, first, "a")
	expect(t, second, "a")
	for range 5 {
		expectEnd(t, dial(t, r))
	}
	if got := w.failed(r, tooMany); got != 5 {
		t.Errorf("%d were counted", got)
	}
	// The limit also counts the connections of the previous handlers.
	other := *r
	other.Policy.MaxConnections = 1
	w.set(&other, named(t, "b"))
	first.Close()
	await(t, "the end of the first connection", func() bool { return w.active(r) == 1 })
	expectEnd(t, dial(t, r))
	second.Close()
	await(t, "the end of the second connection", func() bool { return w.active(r) == 0 })
	// Rejected connections do not count towards the limit.
	for range 10 {
		conn := dial(t, r)
		expect(t, conn, "b")
		conn.Close()
		await(t, "the end of the connection", func() bool { return w.active(r) == 0 })
	}
}

func TestTriesAreLimited(t *testing.T) {
	for name, policy := range map[string]ir.StreamPolicy{
		"in number": {Tries: 1}, "in time": {TriesTimeout: time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := route(ir.TCP, freePort(t), "a")
			r.Policy = policy
			w.Endpoints.Configure(r.Backends[0].Backend.ID, &ir.LoadBalancing{EjectAfter: -1})
			w.set(r, net.JoinHostPort("127.0.0.1", "1"), named(t, "u"))
			refused := 0
			for range 4 {
				conn := dial(t, r)
				if n, _ := conn.Read(make([]byte, 1)); n == 0 {
					refused++
				}
			}
			if refused != 2 || w.failed(r, noEndpoint) != 2 {
				t.Errorf("%d of 4 have found no endpoint, and %d are counted; want 2", refused, w.failed(r, noEndpoint))
			}
		})
	}
}

// account returns the account of a port.
func (w *world) account(r *ir.StreamRoute) *account {
	w.t.Helper()
	w.ports.accounts.mu.Lock()
	defer w.ports.accounts.mu.Unlock()
	a := w.ports.accounts.all[portName(r)]
	if a == nil {
		w.t.Fatalf("nothing is counted of %s", portName(r))
	}
	return a
}

func (w *world) failed(r *ir.StreamRoute, f failure) int { return int(w.account(r).failed[f].Load()) }

func (w *world) active(r *ir.StreamRoute) int { return int(w.account(r).active.Load()) }

func TestConnectionsEndWhenTheirEndpointHasBeenGoneForLong(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	// Endpoints are checked as often as idle connections: eight times within the timeout.
	r.Policy.IdleTimeout = 4 * time.Second
	a, b := named(t, "a"), named(t, "b")
	w.set(r, a)
	open := dial(t, r)
	expect(t, open, "a")

	begin := time.Now()
	w.endpoints(r, b)

	// New connections go elsewhere at once, and open ones continue for a while.
	expect(t, dial(t, r), "b")
	send(t, open, "still there")
	expect(t, open, "still there")
	w.ports.SetDrain(300 * time.Millisecond)
	expectEnd(t, open)
	if took := time.Since(begin); took < 300*time.Millisecond {
		t.Errorf("it took %v", took)
	}
	await(t, "the count of it", func() bool { return w.failed(r, drained) == 1 })
}
