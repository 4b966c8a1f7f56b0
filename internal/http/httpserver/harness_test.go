package httpserver_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/httpserver"
	"github.com/k8singress/k8singress/internal/http/limits"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// patience is the maximum time that tests wait for an expected event.
const patience = fixture.Patience

func patient() *limits.Limits {
	return &limits.Limits{Head: patience, Body: patience, Send: patience, Idle: patience, HeadBytes: 32 << 10}
}

// host implements httpserver.Host with functions. The functions may be nil, except for handle.
type host struct {
	handle   func(message.Writer, *message.Request)
	limits   *limits.Limits
	handOver func(net.Conn)
	rejected func(*message.Request, *http1.Error)

	mu      sync.Mutex
	refused []string
	panics  []any
}

func (h *host) Handle(w message.Writer, r *message.Request) { h.handle(w, r) }

func (h *host) Limits() *limits.Limits { return h.limits }

func (h *host) HandOver(conn net.Conn) { h.handOver(conn) }

func (h *host) Reject(w message.Writer, r *message.Request, reason *http1.Error) {
	if h.rejected != nil {
		h.rejected(r, reason)
	}
	answer(w, reason.Status, fmt.Sprintf("%d %s: %s\n", reason.Status, http.StatusText(reason.Status), reason.Reason),
		message.ContentType.Field("text/plain; charset=utf-8"))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused = append(h.refused, reason.Reason)
}

func (h *host) ReportPanic(value any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.panics = append(h.panics, value)
}

func (h *host) reasons() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.refused, " ")
}

// running is a server that listens on an address.
type running struct {
	host
	address string

	conns  sync.Map
	closed atomic.Bool
}

// Serve serves a connection until it ends.
func (r *running) Serve(nc net.Conn, info *message.Conn) {
	c := httpserver.New(nc, info, &r.host)
	r.conns.Store(c, nc)
	defer r.conns.Delete(c)
	if r.closed.Load() {
		_ = nc.Close()
	}
	c.Serve()
}

// Connections returns the number of open connections, and how many of them wait for a request.
func (r *running) Connections() (all, waiting int) {
	r.conns.Range(func(c, _ any) bool {
		if all++; !isActive(c) {
			waiting++
		}
		return true
	})
	return all, waiting
}

func isActive(c any) bool {
	_, waits := c.(*httpserver.Conn).IdleTime()
	return !waits
}

// Shutdown calls Shutdown for each connection.
func (r *running) Shutdown() {
	r.conns.Range(func(c, _ any) bool {
		c.(*httpserver.Conn).Shutdown()
		return true
	})
}

// serve starts a server. change may be nil.
func serve(t testing.TB, handler func(message.Writer, *message.Request), change func(*host)) *running {
	t.Helper()
	r := &running{host: host{handle: handler, limits: patient()}}
	if change != nil {
		change(&r.host)
	}
	listener := fixture.Listen(t)
	r.address = listener.Addr().String()
	ended := acceptFrom(listener, func(nc net.Conn) { r.Serve(nc, connOf(nc)) })
	t.Cleanup(func() {
		_ = listener.Close()
		r.closed.Store(true)
		r.conns.Range(func(_, nc any) bool {
			_ = nc.(net.Conn).Close()
			return true
		})
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("connections are left over")
		}
	})
	return r
}

// accept starts a listener that passes each connection to serve, and returns its address.
func accept(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	listener := fixture.Listen(t)
	acceptFrom(listener, serve)
	return listener.Addr().String()
}

// acceptFrom passes each connection of listener to serve, on a goroutine of its own. The returned channel is closed
// when the listener is closed and each call of serve has returned. Unlike fixture.Serve, acceptFrom closes no
// connection, because a connection that switched protocols outlives serve.
func acceptFrom(listener net.Listener, serve func(net.Conn)) <-chan struct{} {
	var running sync.WaitGroup
	// This goroutine counts as well, so the count cannot fall to zero before the last connection is accepted.
	running.Go(func() {
		for {
			nc, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { serve(nc) })
		}
	})
	ended := make(chan struct{})
	go func() {
		running.Wait()
		close(ended)
	}()
	return ended
}

func connOf(nc net.Conn) *message.Conn {
	return message.NewConn(netip.MustParseAddrPort(nc.RemoteAddr().String()),
		netip.MustParseAddrPort(nc.LocalAddr().String()), nil)
}

// client is a client connection.
type client struct {
	t testing.TB
	net.Conn
	reader *bufio.Reader
}

func dial(t testing.TB, address string) *client {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &client{t, nc, bufio.NewReader(nc)}
}

// piped returns a client whose connection to a server is in memory. Unlike a socket, it works with the fake clock of
// synctest, so a busy machine cannot make time limits end too early.
func piped(t *testing.T, h *host) *client {
	t.Helper()
	near, far := net.Pipe()
	address, served := netip.MustParseAddrPort("127.0.0.1:1"), make(chan struct{})
	go func() {
		defer close(served)
		httpserver.New(far, message.NewConn(address, address, nil), h).Serve()
	}()
	t.Cleanup(func() {
		_ = near.Close()
		<-served
	})
	return &client{t, near, bufio.NewReader(near)}
}

// exchange sends a text, and returns all responses until the end of the connection, without Date fields.
func (c *client) exchange(text string) string {
	c.t.Helper()
	if text != "" {
		go func() { _, _ = io.WriteString(c.Conn, text) }() // The server may respond before it has read everything.
	}
	return undated(c.rest())
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, text); err != nil {
		c.t.Fatal(err)
	}
}

// expect reads the given text from the connection.
func (c *client) expect(want string) {
	c.t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(c.reader, got)
	if err != nil || string(got) != want {
		c.t.Fatalf("%q came, %v; want %q", got[:n], err, want)
	}
}

// rest reads until the end of the connection.
func (c *client) rest() string {
	c.t.Helper()
	all, err := io.ReadAll(c.reader)
	if err != nil {
		c.t.Fatalf("after %q: %v", all, err)
	}
	return string(all)
}

// ended checks that the connection is closed cleanly, without more data.
func (c *client) ended() {
	c.t.Helper()
	if rest := c.rest(); rest != "" {
		c.t.Fatalf("%q came, want the end", rest)
	}
}

// undated removes the Date fields.
func undated(text string) string {
	for {
		start := strings.Index(text, "Date: ")
		if start < 0 {
			return text
		}
		end := strings.Index(text[start:], "\r\n")
		text = text[:start] + text[start+end+2:]
	}
}

// exchange sends a text, and returns all responses until the end of the connection, without Date fields.
func exchange(t testing.TB, address, text string) string {
	t.Helper()
	c := dial(t, address)
	c.send(text)
	return undated(c.rest())
}

func crlf(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n\r\n" }

func get(path string) string { return crlf("GET "+path+" HTTP/1.1", "Host: a") }

func last(path string) string { return crlf("GET "+path+" HTTP/1.1", "Host: a", "Connection: close") }

// answer writes a short response.
func answer(w message.Writer, status int, text string, fields ...message.Field) {
	_ = w.Head(&message.Response{Status: status, Length: int64(len(text)), Fields: fields})
	_, _ = io.WriteString(w, text)
}

// echo responds with the method, the path, the body and its trailers.
func echo(w message.Writer, r *message.Request) {
	text := r.Method + " " + r.OutTarget()
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		text += " " + string(body)
		if err != nil {
			text += " " + err.Error()
		}
		if r.Trailers != nil {
			for _, f := range r.Trailers() {
				text += " " + f.Name + "=" + f.Value
			}
		}
	}
	answer(w, http.StatusOK, text)
}

// ok returns the response of echo for a text.
func ok(text string, connection ...string) string {
	lines := append([]string{"HTTP/1.1 200 OK", fmt.Sprintf("Content-Length: %d", len(text))}, connection...)
	return crlf(lines...) + text
}

const closes = "Connection: close"

var errTest = errors.New("test")
