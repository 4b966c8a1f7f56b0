package l4app

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/ir"
)

func TestClientMayFinishFirst(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	w.set(r, backend(t, func(conn *net.TCPConn) {
		question, err := io.ReadAll(conn)
		if err == nil {
			_, _ = conn.Write(append([]byte("heard "), question...))
		}
	}))
	conn := dial(t, r)
	send(t, conn, "all of it")
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	expectAll(t, conn, "heard all of it")
}

func expectAll(t *testing.T, conn io.Reader, want string) {
	t.Helper()
	got, err := io.ReadAll(conn)
	if err != nil || string(got) != want {
		t.Fatalf("read %q, %v; want %q", got, err, want)
	}
}

func TestBackendMayFinishFirst(t *testing.T) {
	w := newWorld(t)
	heard := make(chan string, 1)
	r := route(ir.TCP, freePort(t), "a")
	w.set(r, backend(t, func(conn *net.TCPConn) {
		_, _ = io.WriteString(conn, "that is all")
		_ = conn.CloseWrite()
		rest, _ := io.ReadAll(conn)
		heard <- string(rest)
	}))
	conn := dial(t, r)
	expectAll(t, conn, "that is all")
	send(t, conn, "but I go on")
	conn.Close()
	select {
	case got := <-heard:
		if got != "but I go on" {
			t.Errorf("the backend heard %q", got)
		}
	case <-time.After(patience):
		t.Fatal("the backend never saw the end")
	}
}

func TestManyBytesBothWays(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	w.set(r, named(t, ""))
	conn := dial(t, r)
	sent := make([]byte, 32<<20)
	if _, err := rand.Read(sent); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = conn.Write(sent)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(conn)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("got %d of %d bytes back, or others; %v", len(got), len(sent), err)
	}
}

func TestAnotherEndpointIsAskedWhenOneIsDown(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	down := net.JoinHostPort("127.0.0.1", "1")
	w.set(r, down, named(t, "up"))
	for range 4 {
		expect(t, dial(t, r), "up")
	}
}

func TestNoEndpoint(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	w.set(r)
	expectEnd(t, dial(t, r))
	w.endpoints(r, net.JoinHostPort("127.0.0.1", "1"))
	expectEnd(t, dial(t, r))
	// Endpoints come without a change of the port.
	w.endpoints(r, named(t, "up"))
	expect(t, dial(t, r), "up")
}

func TestBackendBreaksOff(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	w.set(r, backend(t, func(conn *net.TCPConn) {
		_, _ = conn.Read(make([]byte, 1))
		_ = conn.SetLinger(0)
	}))
	conn := dial(t, r)
	send(t, conn, "x")
	expectEnd(t, conn)
}

// TestPass holds that a connection which somebody else has accepted can be handed over.
func TestPass(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	w.endpoints(r, named(t, "a"))
	address := backend(t, func(conn *net.TCPConn) {
		if err := Pass(conn, []byte("ahead"), w.table.Backend(r.Backend.ID), zap.NewNop()); err != nil {
			t.Error(err)
		}
	})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	expect(t, conn, "aahead")
	send(t, conn, "more")
	expect(t, conn, "more")
}
