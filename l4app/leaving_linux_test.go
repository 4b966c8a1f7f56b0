package l4app

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/upstream/udp"
)

// slowly is a UDP endpoint that responds only when the test tells it to.
type slowly struct {
	t      *testing.T
	socket net.PacketConn
	from   net.Addr
}

func newSlowly(t *testing.T) *slowly {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	_ = socket.SetDeadline(time.Now().Add(patience))
	return &slowly{t: t, socket: socket}
}

func (s *slowly) address() string { return s.socket.LocalAddr().String() }

func (s *slowly) expect(want string) {
	s.t.Helper()
	buffer := make([]byte, 100)
	n, from, err := s.socket.ReadFrom(buffer)
	if s.from = from; err != nil || string(buffer[:n]) != want {
		s.t.Fatalf("the endpoint heard %q, %v; want %q", buffer[:n], err, want)
	}
}

func (s *slowly) send(text string) {
	s.t.Helper()
	if _, err := s.socket.WriteTo([]byte(text), s.from); err != nil {
		s.t.Fatal(err)
	}
}

// waitingClient returns a port with one client that waits for the endpoint's response.
func waitingClient(t *testing.T) (w *world, r *ir.StreamRoute, client net.Conn, endpoint *slowly) {
	t.Helper()
	w, r, endpoint = newWorld(t), route(ir.UDP, freePort(t), "a"), newSlowly(t)
	w.set(r, endpoint.address())
	client = dial(t, r)
	send(t, client, "question")
	endpoint.expect("question")
	return w, r, client, endpoint
}

// TestClientsOfARemovedUDPPort checks that clients of a closed port get their responses and may continue, and that
// new clients are rejected.
func TestClientsOfARemovedUDPPort(t *testing.T) {
	w, r, client, endpoint := waitingClient(t)
	traffic := trafficOf(w, r)
	w.remove(r)
	endpoint.send("answer")
	expectDatagram(t, client, "answer")
	send(t, client, "more")
	endpoint.expect("more")
	endpoint.send("of it")
	expectDatagram(t, client, "of it")

	send(t, dial(t, r), "somebody else")
	await(t, "the loss of what a new client sends", func() bool { return traffic.Lost[udp.PortClosing].Load() == 1 })
	awaitFree(t, r)
	if n := traffic.Sessions.Load(); n != 0 {
		t.Errorf("there are %d sessions", n)
	}
}

// awaitFree waits until another socket can use the port.
func awaitFree(t *testing.T, r *ir.StreamRoute) {
	t.Helper()
	await(t, "the end of the port", func() bool {
		socket, err := net.ListenPacket("udp", "127.0.0.1:"+itoa(int(r.Port)))
		if err != nil {
			return false
		}
		return socket.Close() == nil
	})
}

func expectDatagram(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	buffer := make([]byte, 100)
	if n, err := conn.Read(buffer); err != nil || string(buffer[:n]) != want {
		t.Fatalf("got %q, %v; want %q", buffer[:n], err, want)
	}
}

// TestReopenedUDPPort checks that a port can be opened again at once while its old clients are still active.
func TestReopenedUDPPort(t *testing.T) {
	w, r, client, _ := waitingClient(t)
	w.remove(r)
	w.set(r, packetBackend(t, "b:"))
	exchange(t, client, []byte("x"), "b:x")
}

// TestUDPClientsEndAfterTheDrainTime checks that a closed port ends after the drain time, even with active clients.
func TestUDPClientsEndAfterTheDrainTime(t *testing.T) {
	w, r, client, _ := waitingClient(t)
	w.ports.SetDrain(300 * time.Millisecond)
	w.remove(r)
	ended := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				// The write fails after the port has been closed.
				_, _ = client.Write([]byte("x"))
			case <-ended:
				return
			}
		}
	})
	defer busy.Wait()
	defer close(ended)
	awaitFree(t, r)
}

// TestUDPClientsWhenTheProcessEnds checks that the ending process waits for UDP clients, up to a limit.
func TestUDPClientsWhenTheProcessEnds(t *testing.T) {
	t.Run("for an answer", func(t *testing.T) {
		w, _, client, endpoint := waitingClient(t)
		left := make(chan struct{})
		w.ports.Outlast()
		go func() {
			defer close(left)
			w.ports.Drain(context.Background())
		}()
		await(t, "the end of the port", func() bool { return len(w.ports.Names()) == 0 })
		endpoint.send("answer")
		expectDatagram(t, client, "answer")
		fixture.Receive(t, "the end of what leaves", left)
	})
	t.Run("no longer than there is time", func(t *testing.T) {
		w, r, _, _ := waitingClient(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w.ports.Outlast()
		w.ports.Drain(ctx)
		awaitFree(t, r)
	})
}

// TestConfigurationGetsAUDPPort checks that a port is freed at once if a Caddy configuration listens on it.
func TestConfigurationGetsAUDPPort(t *testing.T) {
	w, r, _, _ := waitingClient(t)
	ours := w.ports.open[portName(r)].forwarders[0]
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	server := `,"layer4":{"servers":{"mine":{"listen":["udp/127.0.0.1:%d"]}}}`
	w.ctx = w.load(fmt.Sprintf(server, r.Port))
	expectTaken(t, w.ports.Adopt(w.ctx, nil), r, "layer4 server mine")
	select {
	case <-ours.Closed():
	default:
		t.Error("our socket takes datagrams that are for Caddy")
	}
}

// TestUDPPortOutlivesAFault checks that a port keeps working after a panic, which settings without a backend cause.
func TestUDPPortOutlivesAFault(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	w.set(r, packetBackend(t, "a:"))
	client := dial(t, r)
	exchange(t, client, []byte("1"), "a:1")
	port, traffic := w.ports.open[portName(r)], trafficOf(w, r)
	good := port.chain.Load()
	bad := *good
	settings := *good.udp
	settings.Backends = nil
	bad.udp = &settings
	port.chain.Store(&bad)
	send(t, client, "2")
	failures := "failures_total " + itoa(int(r.Port)) + " udp internal"
	await(t, "the fault", func() bool { return w.metrics()[failures] == 1 })
	port.chain.Store(good)
	exchange(t, client, []byte("3"), "a:3")
	if sessions, opened := traffic.Sessions.Load(), traffic.Opened.Load(); sessions != 1 || opened != 2 {
		t.Errorf("there are %d of %d sessions, want 1 of 2", sessions, opened)
	}
	w.ports.Update(w.ctx, map[string]*document.Port{portName(r): nil})
}

// TestDeadUDPEndpointIsReported checks that a port logs and counts an endpoint that does not exist, although clients
// get no response.
func TestDeadUDPEndpointIsReported(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	w.set(r, "127.0.0.1:"+itoa(int(freePort(t))))
	client, traffic := dial(t, r), trafficOf(w, r)
	send(t, client, "question")
	await(t, "the loss", func() bool { return traffic.Lost[udp.EndpointRefused].Load() > 0 })
}
