package l4app

import (
	"bytes"
	"crypto/rand"
	"errors"
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

func TestProxyProtocol(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	r.AcceptProxy, r.SendProxy = true, ir.ProxyV1
	w.set(r, named(t, ""))

	conn := dial(t, r)
	header := "PROXY TCP4 192.0.2.1 192.0.2.2 1111 2222\r\n"
	send(t, conn, header+"first")
	// What the backend hears comes back: the header with the client's own address, then the rest.
	expect(t, conn, header+"first")
	send(t, conn, "second")
	expect(t, conn, "second")
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	expectEnd(t, conn)

	without := dial(t, r)
	send(t, without, "no header at all, just bytes that go on for a while\r\n")
	expectEnd(t, without)
}

func TestSendProxyOfPlainClient(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	r.SendProxy = ir.ProxyV1
	w.set(r, named(t, ""))
	conn := dial(t, r)
	client, server := conn.LocalAddr().(*net.TCPAddr), conn.RemoteAddr().(*net.TCPAddr)
	expect(t, conn, "PROXY TCP4 127.0.0.1 127.0.0.1 "+itoa(client.Port)+" "+itoa(server.Port)+"\r\n")
}

func TestIdleConnectionEnds(t *testing.T) {
	client, server := pair(t)
	r := &relaying{tick: time.Millisecond, longest: 20 * time.Millisecond}
	r.moved()
	if err := r.pump(client, server); !errors.Is(err, errIdle) {
		t.Errorf("got %v, want %v", err, errIdle)
	}
}

// TestBusyDirectionKeepsTheOtherOpen holds that a connection counts as busy when bytes move one way only.
func TestBusyDirectionKeepsTheOtherOpen(t *testing.T) {
	client, server := pair(t)
	r := &relaying{tick: time.Millisecond, longest: time.Second}
	r.moved()
	done := make(chan error, 1)
	go func() { done <- r.pump(client, server) }()
	until := time.After(3 * r.longest / 2)
	for {
		r.moved()
		select {
		case err := <-done:
			t.Fatalf("ended: %v", err)
		case <-time.After(time.Millisecond):
			continue
		case <-until:
		}
		break
	}
	client.Close()
	server.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want %v", err, net.ErrClosed)
	}
}

// pair returns the two ends of a TCP connection.
func pair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	accepted := make(chan net.Conn, 1)
	address := backend(t, func(conn *net.TCPConn) {
		accepted <- conn
		_, _ = conn.SyscallConn()
		<-t.Context().Done()
	})
	a, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a, <-accepted
}
