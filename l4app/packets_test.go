package l4app

import (
	"bytes"
	"errors"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/ir"
)

func itoa(n int) string { return strconv.Itoa(n) }

// packetBackend answers each datagram with a name and what it heard.
func packetBackend(t *testing.T, name string) string {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	go func() {
		buffer := make([]byte, datagramSize)
		for {
			n, from, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = socket.WriteTo(append([]byte(name), buffer[:n]...), from)
		}
	}()
	return socket.LocalAddr().String()
}

func exchange(t *testing.T, conn net.Conn, question []byte, want string) {
	t.Helper()
	if _, err := conn.Write(question); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, datagramSize)
	n, err := conn.Read(buffer)
	if err != nil || string(buffer[:n]) != want {
		t.Fatalf("got %d bytes, %v; want %d", n, err, len(want))
	}
}

func TestDatagramsStayWhole(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	w.set(r, packetBackend(t, "a:"))
	one, other := dial(t, r), dial(t, r)
	for _, size := range []int{0, 1, 1200, 8192, 9001, 60000} {
		question := bytes.Repeat([]byte{'x'}, size)
		exchange(t, one, question, "a:"+string(question))
		exchange(t, other, question, "a:"+string(question))
	}
}

func TestEachClientKeepsItsEndpoint(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	w.set(r, packetBackend(t, "a:"))
	conn := dial(t, r)
	exchange(t, conn, []byte("1"), "a:1")
	w.endpoints(r, packetBackend(t, "b:"))
	exchange(t, conn, []byte("2"), "a:2")
	exchange(t, dial(t, r), []byte("3"), "b:3")
}

// TestClientGetsAnotherEndpoint holds that a client is not stuck with an endpoint that is down.
func TestClientGetsAnotherEndpoint(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	w.set(r, "127.0.0.1:1")
	conn := dial(t, r)
	send(t, conn, "lost")
	w.endpoints(r, packetBackend(t, "a:"))
	buffer := make([]byte, datagramSize)
	await(t, "an answer of the other endpoint", func() bool {
		send(t, conn, "2")
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		n, err := conn.Read(buffer)
		return err == nil && string(buffer[:n]) == "a:2"
	})
}

func TestPacketPortGoesAndComesBack(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	w.set(r, packetBackend(t, "a:"))
	for range 50 {
		exchange(t, dial(t, r), []byte("1"), "a:1")
	}
	w.remove(r)
	gone := dial(t, r)
	await(t, "the refusal of a datagram", func() bool {
		_, writing := gone.Write([]byte("1"))
		_ = gone.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		_, reading := gone.Read(make([]byte, 1))
		return errors.Join(writing, reading) != nil && !errors.Is(reading, os.ErrDeadlineExceeded)
	})
	w.set(r, packetBackend(t, "b:"))
	exchange(t, dial(t, r), []byte("2"), "b:2")
}

func TestHeldPacketPortIsRefused(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	holder, err := net.ListenPacket("udp", net.JoinHostPort("127.0.0.1", itoa(int(r.Port))))
	if err != nil {
		t.Fatal(err)
	}
	w.endpoints(r, packetBackend(t, "a:"))
	expectHeld(t, w.ports.Update(w.ctx, one(r)), r)
	holder.Close()
	if refused := w.ports.Retry(w.ctx); len(refused) > 0 {
		t.Fatalf("refused: %v", refused)
	}
	exchange(t, dial(t, r), []byte("1"), "a:1")
}

func TestIdleClientIsForgotten(t *testing.T) {
	c := newClient(nil, &net.UDPAddr{}, 10*time.Millisecond)
	begin := time.Now()
	if _, err := c.next(); err == nil || time.Since(begin) < c.idle {
		t.Errorf("ended after %v with %v, want the end after %v", time.Since(begin), err, c.idle)
	}
	if !c.isClosed() {
		t.Error("more datagrams of the client would be put into its queue")
	}
}

func TestTooManyClients(t *testing.T) {
	all := &clients{open: map[string]*client{}}
	for i := range mostClients {
		all.open[itoa(i)] = newClient(nil, &net.UDPAddr{}, time.Minute)
	}
	if c, _ := all.get("one more", func() *client { t.Error("made one more"); return nil }); c != nil {
		t.Error("took one more")
	}
	if c, isNew := all.get("1", nil); c == nil || isNew {
		t.Error("a client that is there was turned away")
	}
}

func TestDeadlineMoves(t *testing.T) {
	d := newDeadline()
	d.set(time.Now().Add(time.Hour))
	waiting := d.passed()
	d.set(time.Now().Add(time.Millisecond))
	select {
	case <-waiting:
	case <-time.After(patience):
		t.Fatal("a wait that had begun did not see the new deadline")
	}
	d.set(time.Time{})
	select {
	case <-d.passed():
		t.Error("never has come")
	default:
	}
	d.set(time.Now().Add(-time.Second))
	<-d.passed()
}
