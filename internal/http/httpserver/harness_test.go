package httpserver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/httpserver"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// patience is the maximum time that tests wait for an expected event.
const patience = 10 * time.Second

func limits() *httpserver.Options {
	return &httpserver.Options{
		HeaderTimeout: patience, BodyTimeout: patience, WriteTimeout: patience, KeepAlive: patience, MaxHead: 32 << 10,
	}
}

// running is a server that listens on an address.
type running struct {
	*httpserver.Server
	address string

	mu      sync.Mutex
	refused []string
	panics  []any
}

func (r *running) reasons() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.refused, " ")
}

// serve starts a server. change may be nil.
func serve(t testing.TB, handler func(message.Writer, *message.Request), change func(*httpserver.Server)) *running {
	t.Helper()
	r := new(running)
	r.Server = &httpserver.Server{
		Handler: handler, Options: limits,
		Rejected: func(_ *message.Request, reason *http1.Error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.refused = append(r.refused, reason.Reason)
		},
		Panicked: func(value any) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.panics = append(r.panics, value)
		},
	}
	if change != nil {
		change(r.Server)
	}
	r.address = accept(t, func(nc net.Conn) { r.Serve(nc, connOf(nc)) })
	t.Cleanup(func() {
		r.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := r.Shutdown(ctx); err != nil {
			t.Error("connections are left over:", err)
		}
	})
	return r
}

// accept starts a listener that passes each connection to serve, and returns its address.
func accept(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	listener := fixture.Listen(t)
	// fixture.Serve would close connections that were switched.
	go func() {
		for {
			nc, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(nc)
		}
	}()
	return listener.Addr().String()
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
