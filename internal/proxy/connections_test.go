package proxy_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/k8singress/k8singress/internal/fixture"
	"github.com/k8singress/k8singress/internal/proxy"
)

func TestConnectionsAreUsedAgain(t *testing.T) {
	e, p := serve(t, says(fine)), pool(t)
	for range 20 {
		if got := forward(p, request(t, http.MethodGet, ""), of(e)); got != "200 ok" {
			t.Fatal(got)
		}
	}
	if n := e.connections.Load(); n != 1 {
		t.Errorf("%d connections for 20 requests", n)
	}
}

// TestAClosedIdleConnectionHurtsNobody: not even a request that must not be sent twice.
func TestAClosedIdleConnectionHurtsNobody(t *testing.T) {
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

// TestAnAnswerThatNobodyAskedFor holds that what an endpoint says between two requests is not taken for the next answer.
func TestAnAnswerThatNobodyAskedFor(t *testing.T) {
	e := serve(t, says(fine+"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"))
	p := pool(t)
	for range 5 {
		if got := forward(p, request(t, http.MethodGet, ""), of(e)); got != "200 ok" {
			t.Error(got)
		}
	}
	if n := e.connections.Load(); n != 5 {
		t.Errorf("%d connections", n)
	}
}

func TestAnAnswerThatBreaksOff(t *testing.T) {
	e := serve(t, func(conn net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
		return false
	})
	w := httptest.NewRecorder()
	err := send(pool(t), w, request(t, http.MethodGet, ""), settings(), of(e))
	if !errors.Is(err, proxy.ErrCut) || w.Body.String() != "half" || e.requests.Load() != 1 {
		t.Errorf("error %v; the client got %q, and the endpoint %d requests", err, w.Body, e.requests.Load())
	}
}

func TestClosedPoolKeepsNothing(t *testing.T) {
	e, p := serve(t, says(fine)), proxy.NewPool()
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
	e, p := serve(t, says(fine)), pool(t)
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
