package l4app

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

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

// TestHalfClosedConnectionsEndWithTheirPort holds that a client which has said all, and an endpoint which has not, are let go of
// in time.
func TestHalfClosedConnectionsEndWithTheirPort(t *testing.T) {
	w := newWorld(t)
	w.ports.SetDrain(10 * time.Millisecond)
	r := route(ir.TCP, freePort(t), "a")
	heard, ended := make(chan struct{}), make(chan struct{})
	w.set(r, backend(t, func(conn *net.TCPConn) {
		_, _ = io.Copy(io.Discard, conn)
		close(heard)
		// What it has to say never comes; it learns that nobody waits for it any more.
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
	<-heard
	w.remove(r)
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the connection lasts")
	}
}

// TestWhatWasSaidBeforeTheEnd holds that an endpoint whose answers nobody hears any more gets all that the client has said, or an
// error: never an end after a part of it.
func TestWhatWasSaidBeforeTheEnd(t *testing.T) {
	const size = 4 << 20
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	gone, heard := make(chan struct{}), make(chan error, 1)
	w.set(r, backend(t, func(conn *net.TCPConn) {
		<-gone
		total, buffer := 0, make([]byte, 16<<10)
		for i := 0; ; i++ {
			// The client is no longer there to hear the first word, and says so. The second one cannot be written to it.
			if i == 0 || i == 40 {
				if _, err := conn.Write([]byte("so far")); err != nil {
					heard <- nil
					return
				}
			}
			n, err := conn.Read(buffer)
			if total += n; err == nil {
				continue
			}
			if errors.Is(err, io.EOF) && total != size {
				heard <- fmt.Errorf("the endpoint has heard %d of %d bytes, and then the end", total, size)
				return
			}
			heard <- nil
			return
		}
	}))
	conn := dial(t, r)
	// Not before all of it is on its way.
	if _, err := conn.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	close(gone)
	if err := <-heard; err != nil {
		t.Error(err)
	}
}
