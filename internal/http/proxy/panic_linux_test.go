package proxy_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/k8singress/k8singress/internal/http/callout"
	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// collapsing is a writer that panics when the head of the response is written.
type collapsing struct{ message.Writer }

func (collapsing) Head(*message.Response) error { panic("a fault of the controller") }
func (collapsing) EndBody()                     {}

// collapse forwards a request that ends in a panic.
func collapse(t *testing.T, p *proxy.Pool, r *message.Request, to *endpoint) {
	t.Helper()
	x := &exchange.Exchange{
		Request: r, Route: &exchange.Route{Path: "/", Origin: "Ingress/shop/web"}, Backend: of(to),
		Clients: realip.New(ir.Clients{}), Global: &ir.Global{}, Writer: collapsing{},
	}
	var err error
	if panics.Try(func() { err = p.Forward(x, settings(), nil) }) == nil {
		t.Errorf("there was no panic; the error is %v", err)
	}
}

// narrow returns a listener whose connections have small kernel buffers. The send buffer holds a few segments, which
// are large on the loopback interface.
func narrow(t *testing.T) net.Listener {
	t.Helper()
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, 536)
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 16<<10)
		})
	}}
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

// holding starts an endpoint that responds before it has read the body. Once read is closed, it reads the body and
// returns what has arrived.
func holding(t *testing.T, read <-chan struct{}) (*endpoint, <-chan []byte) {
	e, got := &endpoint{Listener: narrow(t)}, make(chan []byte, 1)
	fixture.Serve(e, func(conn net.Conn) {
		reader := bufio.NewReader(conn)
		r, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		first := make([]byte, 1)
		_, _ = io.ReadFull(r.Body, first) // The upload has begun.
		_, _ = io.WriteString(conn, fine)
		<-read
		rest, _ := io.ReadAll(r.Body)
		body := append(first, rest...)
		got <- body
	})
	return e, got
}

// TestPanicKeepsBodiesApart checks that no endpoint gets a part of another request's body after a panic while a
// buffered body is being sent.
func TestPanicKeepsBodiesApart(t *testing.T) {
	const size = 1 << 20
	read := make(chan struct{})
	e, got := holding(t, read)
	p := pool(t)
	r := &message.Request{
		Method: http.MethodPost, Host: "shop.example", Target: "/", Path: "/", EscapedPath: "/", Major: 1, Minor: 1,
		Conn: new(message.Conn), Length: size, Body: bytes.NewReader(bytes.Repeat([]byte("a"), size)),
	}
	collapse(t, p, r, e)
	other := serve(t, respondWith(fine))
	for range 5 {
		if got := forward(p, request(t, http.MethodPost, string(bytes.Repeat([]byte("b"), size))),
			of(other)); got != "200 ok" {
			t.Error(got)
		}
	}
	close(read)
	body := fixture.Receive(t, "the body", got)
	if others := bytes.TrimLeft(body, "a"); len(others) > 0 {
		t.Errorf("the endpoint gets %d bytes, and behind the first %d something else: %q...", len(body),
			len(body)-len(others), others[:1])
	}
}

// TestPanicFreesTheConnection checks that a panic leaks no descriptor of an endpoint or service.
func TestPanicFreesTheConnection(t *testing.T) {
	before := proxy.Used().Endpoints.Used
	p := pool(t)
	defer func() {
		if after := proxy.Used().Endpoints.Used; after != before {
			t.Errorf("%d descriptors are in use, and %d were", after, before)
		}
	}()
	for range 3 {
		r := &message.Request{Method: http.MethodGet, Target: "/", Path: "/", EscapedPath: "/", Major: 1, Minor: 1,
			Conn: new(message.Conn)}
		collapse(t, p, r, serve(t, respondWith(fine)))
		service := serve(t, respondWith("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: b\r\n\r\n"))
		asks := &callout.Service{
			Connect: patience, Read: patience, Write: patience,
			Wants: func(*message.Field) bool { panic("a fault of the controller") },
		}
		call := &callout.Call{Service: asks, Method: http.MethodGet, Target: "/", Host: "auth.example",
			Address: service.Addr().String()}
		if panics.Try(func() { _, _ = p.Call(new(message.Request), call) }) == nil {
			t.Error("there was no panic")
		}
	}
}
