package httpserver_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestSlowReaderOfAWrappedConnection checks that the write timeout applies to each part of a long body, and not to the
// whole body, on connections with TLS and other wrappers.
func TestSlowReaderOfAWrappedConnection(t *testing.T) {
	const parts, size = 12, 64 << 10
	options := patient()
	options.Send = 100 * time.Millisecond
	var failed error
	slow := &host{limits: options, handle: func(w message.Writer, _ *message.Request) {
		_ = w.Head(&message.Response{Status: 200, Length: parts * size})
		for i := 0; i < parts && failed == nil; i++ {
			<-time.After(options.Send / 2)
			_, failed = w.Write(make([]byte, size))
		}
	}}
	synctest.Test(t, func(t *testing.T) {
		if got := piped(t, slow).exchange(last("/")); len(got) < parts*size || failed != nil {
			t.Errorf("the client gets %d bytes of %d, %v", len(got), parts*size, failed)
		}
	})
}

// TestWatchOutlastsReadDeadline checks that the end of a client is noticed long after the last read of the connection.
func TestWatchOutlastsReadDeadline(t *testing.T) {
	entered, gone := make(chan struct{}), make(chan struct{})
	options := patient()
	options.Head, options.Read = 100*time.Millisecond, 100*time.Millisecond
	s := serve(t, func(_ message.Writer, r *message.Request) {
		done := r.Context().Done()
		close(entered)
		<-done
		close(gone)
	}, func(h *host) { h.limits = options })
	c := dial(t, s.address)
	c.send(get("/"))
	<-entered
	// The server closes a connection that sends nothing when the same time has passed.
	silent := dial(t, s.address)
	silent.ended()
	_ = c.Close()
	fixture.Receive(t, "the end of the client", gone)
}

// TestLimitAboveTheLength checks that a source may end before the limit of its io.LimitedReader, and that this limit
// may exceed the Content-Length.
func TestLimitAboveTheLength(t *testing.T) {
	const size = 1000
	s := serve(t, func(w message.Writer, _ *message.Request) {
		_ = w.Head(&message.Response{Status: 200, Length: size})
		if n, err := w.ReadFrom(io.LimitReader(strings.NewReader(strings.Repeat("x", size)), 1<<20)); err != nil {
			t.Errorf("the copy ends after %d bytes: %v", n, err)
		}
	}, nil)
	if got, want := exchange(t, s.address, last("/")), strings.Repeat("x", size); !strings.HasSuffix(got, want) {
		t.Errorf("got %d bytes", len(got))
	}
}
