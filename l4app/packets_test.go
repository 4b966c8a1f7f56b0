package l4app

import (
	"bytes"
	"errors"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
)

func itoa(n int) string { return strconv.Itoa(n) }

// packetBackend starts a backend that answers each datagram with its name and the received bytes.
func packetBackend(t *testing.T, name string) string {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	go func() {
		buffer := make([]byte, 64<<10)
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
	buffer := make([]byte, 64<<10)
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
	a := packetBackend(t, "a:")
	w.set(r, a)
	conn := dial(t, r)
	exchange(t, conn, []byte("1"), "a:1")
	w.endpoints(r, a, packetBackend(t, "b:"))
	for range 4 {
		exchange(t, conn, []byte("2"), "a:2")
	}
}

// TestClientGetsAnotherEndpoint checks that a client whose endpoint is down gets another one.
func TestClientGetsAnotherEndpoint(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	w.set(r, "127.0.0.1:1")
	conn := dial(t, r)
	send(t, conn, "lost")
	w.endpoints(r, packetBackend(t, "a:"))
	buffer := make([]byte, 64<<10)
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
