package proxy_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func TestConnectionsAreUsedAgain(t *testing.T) {
	e, p := serve(t, respondWith(fine)), pool(t)
	for range 20 {
		if got := forward(p, request(t, http.MethodGet, ""), of(e)); got != "200 ok" {
			t.Fatal(got)
		}
	}
	if n := e.connections.Load(); n != 1 {
		t.Errorf("%d connections for 20 requests", n)
	}
}

// TestClosedIdleConnectionFailsNoRequest checks that requests succeed if the endpoint has closed the idle connection,
// including requests that must not be sent twice.
func TestClosedIdleConnectionFailsNoRequest(t *testing.T) {
	closed := make(chan struct{}, 10)
	e := serve(t, func(conn net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(conn, fine)
		_ = conn.Close()
		closed <- struct{}{}
		return false
	})
	p := pool(t)
	for range 5 {
		if got := forward(p, request(t, http.MethodPost, "body"), of(e)); got != "200 ok" {
			t.Error(got)
		}
		fixture.Receive(t, "the end of the connection", closed)
	}
}

// TestUnrequestedResponse checks that data sent by an endpoint between two requests is not taken for the next
// response.
func TestUnrequestedResponse(t *testing.T) {
	const unasked = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"
	certificate := fixture.Certificate(t, "a").Pair()
	for name, answers := range map[string][]string{
		"at once": {fine + unasked}, "in another record": {fine, unasked}, "only a part of it": {fine, unasked[:10]},
		"behind the rest of it": {fine[:len(fine)-1], fine[len(fine)-1:] + unasked},
	} {
		for _, protocol := range protocols {
			t.Run(name+", "+string(protocol), func(t *testing.T) {
				said := make(chan struct{}, 10)
				listener := fixture.Listen(t)
				e := &endpoint{Listener: listener}
				fixture.Serve(listener, func(socket net.Conn) {
					e.connections.Add(1)
					conn := &gathering{Conn: socket}
					spoken := net.Conn(conn)
					if protocol == ir.HTTPS {
						spoken = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}})
					}
					e.converse(spoken, func(net.Conn, *http.Request) bool {
						conn.gathers = true
						for _, answer := range answers {
							_, _ = io.WriteString(spoken, answer)
						}
						_, err := conn.Conn.Write(conn.gathered)
						conn.gathers, conn.gathered = false, nil
						said <- struct{}{}
						return err == nil
					})
				})
				p, s := pool(t), settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: protocol}})
				for range 5 {
					if got := outcomeOf(p, request(t, http.MethodGet, ""), s, of(e)); got != "200 ok" {
						t.Error(got)
					}
					fixture.Receive(t, "all that it says", said)
				}
				if n := e.connections.Load(); n != 5 {
					t.Errorf("%d connections", n)
				}
			})
		}
	}
}

// gathering is a connection that can send several TLS records in one write.
type gathering struct {
	net.Conn
	gathers  bool
	gathered []byte
}

func (g *gathering) Write(b []byte) (int, error) {
	if g.gathers {
		g.gathered = append(g.gathered, b...)
		return len(b), nil
	}
	return g.Conn.Write(b)
}

func TestTruncatedResponse(t *testing.T) {
	e := serve(t, func(conn net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
		return false
	})
	w := httptest.NewRecorder()
	err := forwardOnce(pool(t), w, request(t, http.MethodGet, ""), settings(), of(e))
	if !errors.Is(err, exchange.ErrAborted) || w.Body.String() != "half" || e.requests.Load() != 1 {
		t.Errorf("error %v; the client got %q, and the endpoint %d requests", err, w.Body, e.requests.Load())
	}
}

func TestClosedPoolKeepsNothing(t *testing.T) {
	e, p := serve(t, respondWith(fine)), proxy.NewPool(loopback())
	forward(p, request(t, http.MethodGet, ""), of(e))
	p.Close()
	for range 2 {
		if got := forward(p, request(t, http.MethodGet, ""), of(e)); got != "200 ok" {
			t.Error(got)
		}
	}
	if n := e.connections.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
}

func TestManyAtOnce(t *testing.T) {
	e, p := serve(t, respondWith(fine)), pool(t)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 50 {
				if got := forward(p, request(t, http.MethodPost, "body"), of(e)); got != "200 ok" {
					t.Error(got)
				}
			}
		})
	}
	all.Wait()
	if n := e.connections.Load(); n > 16 {
		t.Errorf("%d connections for 16 clients", n)
	}
}
