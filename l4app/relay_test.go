package l4app

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
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

func TestAnotherEndpointIsTriedWhenOneIsDown(t *testing.T) {
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
	// Endpoints can be added without a change of the port.
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

// TestHalfClosedConnectionsEndWithTheirPort checks that a half-closed connection ends after the drain time of its port.
func TestHalfClosedConnectionsEndWithTheirPort(t *testing.T) {
	w := newWorld(t)
	w.ports.SetDrain(10 * time.Millisecond)
	r := route(ir.TCP, freePort(t), "a")
	heard, ended := make(chan struct{}), make(chan struct{})
	w.set(r, backend(t, func(conn *net.TCPConn) {
		_, _ = io.Copy(io.Discard, conn)
		close(heard)
		// The rest of the response never comes; the endpoint notices that the connection was closed.
		for {
			if _, err := conn.Write([]byte("x")); err != nil {
				close(ended)
				return
			}
		}
	}))
	conn := dial(t, r)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	fixture.Receive(t, "the end of what the client says", heard)
	w.remove(r)
	fixture.Receive(t, "the end of the connection", ended)
}

// TestClientBreaksOff checks that an endpoint can distinguish a complete transfer from an aborted one. A client that
// closes with unread data resets the connection, and the endpoint must get an error rather than an EOF.
func TestClientBreaksOff(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	gone, heard := make(chan struct{}), make(chan error, 1)
	w.set(r, backend(t, func(conn *net.TCPConn) {
		_, _ = io.WriteString(conn, "an answer")
		<-gone
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		_, err := io.Copy(io.Discard, conn)
		heard <- err
	}))
	conn := dial(t, r)
	// Leave the rest of the response unread, so that closing resets the connection.
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	// Write more than all buffers can hold: the endpoint does not read, so the rest never leaves the client.
	_ = conn.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := conn.Write(make([]byte, 256<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the endpoint does not read, and writing ended with %v", err)
	}
	conn.Close()
	close(gone)
	switch err := fixture.Receive(t, "the end at the endpoint", heard); {
	case err == nil:
		t.Error("the endpoint got an orderly end after a part of what the client had to say")
	case !errors.Is(err, syscall.ECONNRESET):
		t.Errorf("the endpoint got %v, want a reset", err)
	}
}
