package proxy_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// The end of a request reaches the endpoint as well on a connection that has served others.
func TestAClientThatGoesAwayFromAUsedConnection(t *testing.T) {
	arrived, gone := make(chan struct{}), make(chan error, 1)
	e := serve(t, func(conn net.Conn, r *http.Request) bool {
		if r.Header.Get("X-Wait") == "" {
			return says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")(conn, r)
		}
		close(arrived)
		_, err := conn.Read(make([]byte, 1))
		gone <- err
		return false
	})
	p, s := pool(t), settings()
	for _, buffers := range []bool{true, false, true} {
		s.BufferResponse = buffers
		w := httptest.NewRecorder()
		if got := outcome(w, send(p, w, request(t, http.MethodGet, ""), s, of(e))); got != "200 ok" {
			t.Fatal(got)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-arrived
		leave()
	}()
	r := request(t, http.MethodGet, "").WithContext(ctx)
	r.Header.Set("X-Wait", "yes")
	if got := forward(p, r, of(e)); got != "error 499" {
		t.Error(got)
	}
	select {
	case err := <-gone:
		if err == nil {
			t.Error("the endpoint got another byte")
		}
	case <-time.After(patience):
		t.Error("the endpoint still works for nobody")
	}
	if n := e.connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}
