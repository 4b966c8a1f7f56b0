package proxy_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/proxy"
)

// worker handles a request until it notices that its client has gone.
type worker struct {
	arrived chan struct{}
	gone    chan error
}

func newWorker() *worker { return &worker{make(chan struct{}), make(chan error, 1)} }

func (w *worker) work(conn net.Conn, _ *http.Request) bool {
	close(w.arrived)
	_, err := conn.Read(make([]byte, 1))
	w.gone <- err
	return false
}

// isLeft sends a request to the worker, cancels it after it has arrived, and checks that the worker notices this.
func (w *worker) isLeft(t *testing.T, p *proxy.Pool, r *http.Request, e *endpoint) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-w.arrived
		leave()
	}()
	if got := forward(p, r.WithContext(ctx), of(e)); got != "error 499" {
		t.Error(got)
	}
	select {
	case err := <-w.gone:
		if err == nil {
			t.Error("the endpoint got another byte")
		}
	case <-time.After(patience):
		t.Error("the endpoint still works for nobody")
	}
}

// TestClientLeavesAReusedConnection checks that the endpoint also notices the end of a request on a reused
// connection.
func TestClientLeavesAReusedConnection(t *testing.T) {
	waiting := newWorker()
	e := serve(t, func(conn net.Conn, r *http.Request) bool {
		if r.Header.Get("X-Wait") == "" {
			return respondWith("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")(conn, r)
		}
		return waiting.work(conn, r)
	})
	p, s := pool(t), settings()
	for _, buffers := range []bool{true, false, true} {
		s.BufferResponse = buffers
		if got := outcomeOf(p, request(t, http.MethodGet, ""), s, of(e)); got != "200 ok" {
			t.Fatal(got)
		}
	}
	r := request(t, http.MethodGet, "")
	r.Header.Set("X-Wait", "yes")
	waiting.isLeft(t, p, r, e)
	if n := e.connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}
