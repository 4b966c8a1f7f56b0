package httpserver_test

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/httpserver"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// halting is a connection on which another goroutine ends the body while a read of the body sets the deadline.
type halting struct {
	net.Conn
	halt atomic.Pointer[func()]
}

func (h *halting) SetReadDeadline(t time.Time) error {
	if halt := h.halt.Load(); halt != nil && time.Until(t) > 0 {
		(*halt)()
	}
	return h.Conn.SetReadDeadline(t)
}

// TestEndBodyWhileADeadlineMoves checks that EndBody ends a read that is about to wait, for a sized and a chunked body.
func TestEndBodyWhileADeadlineMoves(t *testing.T) {
	for _, framing := range []string{"Content-Length: 5", "Transfer-Encoding: chunked"} {
		t.Run(framing, func(t *testing.T) {
			nc := make(chan *halting, 1)
			read := make(chan error, 1)
			options := patient()
			// It differs from the timeout of the head, so that the read sets a new deadline.
			options.Body = time.Hour
			reader := &host{limits: options, handle: func(w message.Writer, r *message.Request) {
				end := func() { w.EndBody() }
				(<-nc).halt.Store(&end)
				_, err := r.Body.Read(make([]byte, 5))
				read <- err
			}}
			address := accept(t, func(conn net.Conn) {
				h := &halting{Conn: conn}
				nc <- h
				httpserver.New(h, connOf(conn), reader).Serve()
			})
			c := dial(t, address)
			c.send(crlf("POST / HTTP/1.1", "Host: a", framing))
			if err := fixture.Receive(t, "the end of the read", read); err == nil {
				t.Error("the read returns no error")
			}
		})
	}
}
