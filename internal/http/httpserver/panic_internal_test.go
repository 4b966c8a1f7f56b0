//go:build race || poison

package httpserver

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/k8singress/k8singress/internal/http/limits"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestPanicKeepsBuffersOutOfThePool checks that the buffers of a connection are not reused after its handler has
// panicked, because a goroutine of the handler may still write to them. Builds that check buffer ownership overwrite
// the buffers that return to a pool.
func TestPanicKeepsBuffersOutOfThePool(t *testing.T) {
	for name, end := range map[string]func(*message.Request){
		"panic":          func(*message.Request) { panic("a fault of the controller") },
		"panic, recover": func(r *message.Request) { r.Panicked = true },
		"return":         func(*message.Request) {},
	} {
		t.Run(name, func(t *testing.T) {
			panics := name != "return"
			buffers, before := lastBuffers(t, end)
			for i, buffer := range buffers {
				if kept := bytes.Equal(buffer, before[i]); kept != panics {
					t.Errorf("buffer %d is the same afterwards: %v; its handler panics: %v", i, kept, panics)
				}
			}
		})
	}
}

// lastBuffers returns the buffers of a connection that has ended, and their contents at the end of the handler, which
// then calls end.
func lastBuffers(t *testing.T, end func(*message.Request)) (buffers, before [2][]byte) {
	t.Helper()
	handle := func(w message.Writer, r *message.Request) {
		own := w.(*writer)
		_ = own.Head(&message.Response{Status: 200, Length: 5})
		_, _ = own.Write([]byte("hello"))
		buffers = [2][]byte{own.buffer, own.c.input.buffer}
		before = [2][]byte{bytes.Clone(buffers[0]), bytes.Clone(buffers[1])}
		end(r)
	}
	client, server := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		New(server, new(message.Conn), oneRequest{handle: handle}).Serve()
	}()
	// The second request is in the buffer while the first one is served.
	if _, err := io.WriteString(client,
		"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, client)
	fixture.Receive(t, "the end of the connection", ended)
	return buffers, before
}

// oneRequest is a Host that allows one request on each connection.
type oneRequest struct {
	Host
	handle func(message.Writer, *message.Request)
}

func (oneRequest) Limits() *limits.Limits { return &limits.Limits{Requests: 1} }

func (o oneRequest) Handle(w message.Writer, r *message.Request) { o.handle(w, r) }

func (oneRequest) ReportPanic(any) {}
