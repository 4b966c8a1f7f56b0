package httpserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func asTimeout(err error, to *net.Error) bool { return errors.As(err, to) && (*to).Timeout() }

func TestWriteTimeout(t *testing.T) {
	options := patient()
	options.Send = 100 * time.Millisecond
	failed := make(chan error, 1)
	s := serve(t, func(w message.Writer, _ *message.Request) {
		_ = w.Head(&message.Response{Status: 200, Length: -1})
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				failed <- err
				return
			}
		}
	}, func(h *host) { h.limits = options })
	dial(t, s.address).send(get("/"))
	var timeout net.Error
	if err := <-failed; !asTimeout(err, &timeout) {
		t.Error(err)
	}
}

// TestSpliceTimeout checks that the write timeout ends the splice to a client that accepts no data, and that a slow
// client gets the whole body.
func TestSpliceTimeout(t *testing.T) {
	const size = 64 << 20
	options := patient()
	options.Send = 200 * time.Millisecond
	source := accept(t, func(nc net.Conn) {
		defer nc.Close()
		_, _ = nc.Write(make([]byte, size))
	})
	failed := make(chan error, 2)
	s := serve(t, func(w message.Writer, _ *message.Request) {
		nc, err := net.Dial("tcp", source)
		if err != nil {
			t.Error(err)
			return
		}
		defer nc.Close()
		_ = w.Head(&message.Response{Status: 200, Length: size})
		_, err = w.ReadFrom(&io.LimitedReader{R: nc, N: size})
		failed <- err
	}, func(h *host) { h.limits = options })
	stalled := dial(t, s.address)
	stalled.send(get("/"))
	var timeout net.Error
	if err := fixture.Receive(t, "the end of a stalled body", failed); !asTimeout(err, &timeout) {
		t.Error(err)
	}
	// On a busy machine the client may occasionally be silent for longer, so the test retries.
	fixture.Eventually(t, "the whole body of a slow client", func() error {
		slow := dial(t, s.address)
		defer slow.Close()
		slow.send(last("/"))
		err := slow.readsSlowly(size)
		return errors.Join(err, fixture.Receive(t, "the end of a slow body", failed))
	})
}

// readsSlowly reads size bytes, at most 1 MB every 20 ms.
func (c *client) readsSlowly(size int64) error {
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for left := size; left > 0; {
		<-ticks.C
		n, err := io.CopyN(io.Discard, c.reader, min(1<<20, left))
		if left -= n; err != nil {
			return err
		}
	}
	return nil
}

func TestKeepAliveRequests(t *testing.T) {
	options := patient()
	options.Requests = 2
	s := serve(t, echo, func(h *host) { h.limits = options })
	if got := exchange(t, s.address, get("/1")+get("/2")+get("/3")); got != ok("GET /1")+ok("GET /2", closes) {
		t.Error(got)
	}
}

// TestClientsDisconnect checks the server against clients that disconnect after each byte of a POST request.
func TestClientsDisconnect(t *testing.T) {
	var whole, cut atomic.Int32
	s := serve(t, func(w message.Writer, r *message.Request) {
		body, err := io.ReadAll(r.Body)
		switch {
		case err == nil && len(body) == 10:
			whole.Add(1)
		case errors.Is(err, io.ErrUnexpectedEOF) || err != nil:
			cut.Add(1)
		}
		answer(w, 200, "")
	}, nil)
	heads := []string{crlf("POST / HTTP/1.1", "Host: a", "Content-Length: 10") + "0123456789",
		crlf("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked") + "a\r\n0123456789\r\n0\r\n\r\n"}
	for _, text := range heads {
		for i := range len(text) + 1 {
			c := dial(t, s.address)
			c.send(text[:i])
			if i%2 == 0 {
				_ = c.Conn.(*net.TCPConn).SetLinger(0)
			}
			c.Close()
		}
	}
	fixture.Holds(t, "all connections end, some with a whole body and some with a part", func() bool {
		all, _ := s.Connections()
		return all == 0 && whole.Load() >= 1 && cut.Load() >= 2
	})
	if got := exchange(t, s.address, crlf("POST / HTTP/1.1", "Host: a", closes, "Content-Length: 1")+
		"a"); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Error(got)
	}
}

// TestHalfOpen checks that many clients with incomplete heads do not block other clients.
func TestHalfOpen(t *testing.T) {
	s := serve(t, echo, nil)
	for i := range 300 {
		dial(t, s.address).send(get("/")[:i%15])
	}
	if got := exchange(t, s.address, last("/")); got != ok("GET /", closes) {
		t.Error(got)
	}
}

func TestClientGone(t *testing.T) {
	for _, c := range []struct {
		name, text string
		end        func(*net.TCPConn)
	}{
		{"closed", get("/"), func(c *net.TCPConn) { c.Close() }},
		{"reset", get("/"), func(c *net.TCPConn) { _ = c.SetLinger(0); c.Close() }},
		{"half-closed", get("/"), func(c *net.TCPConn) { _ = c.CloseWrite() }},
		{"behind a body", crlf("POST / HTTP/1.1", "Host: a", "Content-Length: 1") + "a",
			func(c *net.TCPConn) { c.Close() }},
	} {
		began, over := make(chan struct{}), make(chan error, 1)
		s := serve(t, func(_ message.Writer, r *message.Request) {
			done := r.Context().Done()
			if r.Body != nil {
				_, _ = io.ReadAll(r.Body)
			}
			close(began)
			select {
			case <-done:
				over <- r.Context().Err()
			case <-time.After(patience):
				over <- nil
			}
		}, nil)
		client := dial(t, s.address)
		client.send(c.text)
		<-began
		c.end(client.Conn.(*net.TCPConn))
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// wrapped is a connection like the one after a PROXY protocol header was read.
type wrapped struct{ net.Conn }

func (w *wrapped) Raw() net.Conn { return w.Conn }

// TestWrapped checks that requests on a wrapped connection are served, and that their clients are watched.
func TestWrapped(t *testing.T) {
	gone := make(chan struct{})
	s := serve(t, func(w message.Writer, r *message.Request) {
		if r.Path == "/gone" {
			<-r.Context().Done()
			close(gone)
		}
		echo(w, r)
	}, nil)
	address := accept(t, func(nc net.Conn) { s.Serve(&wrapped{nc}, connOf(nc)) })
	long := strings.Repeat("x", 100_000)
	text := get("/1") + crlf("POST /2 HTTP/1.1", "Host: a", "Content-Length: 100000") + long + last("/3")
	if got := exchange(t, address, text); got != ok("GET /1")+ok("POST /2 "+long)+ok("GET /3", closes) {
		t.Errorf("%.300q", got)
	}
	refused := exchange(t, address, "GET / HTTP/1.1\r\n\r\n"+long)
	if !strings.HasPrefix(refused, "HTTP/1.1 400") {
		t.Errorf("%.300q", refused)
	}
	c := dial(t, address)
	c.send(get("/gone"))
	c.Close()
	fixture.Receive(t, "the end of the context", gone)
}

// TestContexts checks that a context ends with its request, that the next request has a new one, and that a watched
// connection stays open.
func TestContexts(t *testing.T) {
	contexts := make(chan context.Context, 3)
	s := serve(t, func(w message.Writer, r *message.Request) {
		if r.Path != "/unasked" {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			if ctx.Err() != nil {
				t.Error("it has ended before its time")
			}
			contexts <- r.Context()
		}
		echo(w, r)
	}, nil)
	if got := exchange(t, s.address, get("/1")+last("/unasked")); got != ok("GET /1")+ok("GET /unasked", closes) {
		t.Error(got)
	}
	<-contexts
	c := dial(t, s.address)
	for range 3 {
		c.send(get("/1"))
		c.expect("HTTP/1.1 200 OK\r\n")
		ctx := <-contexts
		select {
		case <-ctx.Done():
		case <-time.After(patience):
			t.Error("it does not end with its request")
		}
		for line := ""; line != "GET /1"; {
			b, err := c.reader.ReadByte()
			if err != nil {
				t.Fatal(err)
			}
			if line += string(b); b == '\n' {
				line = ""
			}
		}
	}
}

func TestSwitch(t *testing.T) {
	s := serve(t, func(w message.Writer, r *message.Request) {
		_ = r.Context().Done()
		_ = w.Head(&message.Response{Status: 101,
			Fields: message.Fields{message.Connection.Field("Upgrade"), message.Upgrade.Field("x")}})
		conn, err := w.Switch()
		if err != nil {
			t.Error(err)
			return
		}
		if _, ok := conn.(*net.TCPConn); ok != (r.Path == "/clean") {
			t.Errorf("%s: it is a %T", r.Path, conn)
		}
		go func() {
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
		}()
	}, nil)
	for _, path := range []string{"/clean", "/ahead"} {
		c := dial(t, s.address)
		ahead := ""
		if path == "/ahead" {
			ahead = "ahead"
		}
		c.send(crlf("GET "+path+" HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: x") + ahead)
		c.expect(crlf("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: x") + ahead)
		c.send("hello")
		c.expect("hello")
		_ = c.Conn.(*net.TCPConn).CloseWrite()
		c.ended()
	}
	fixture.Holds(t, "they are no connections of the server any more",
		func() bool { all, _ := s.Connections(); return all == 0 })
}

// TestSwitchWithUnreadBody checks that a connection is not handed over during a read of its request body, or before the
// end of the body.
func TestSwitchWithUnreadBody(t *testing.T) {
	errs := make(chan error, 1)
	s := serve(t, func(w message.Writer, r *message.Request) {
		reading := make(chan struct{})
		if r.Path == "/reading" {
			go func() {
				_, _ = r.Body.Read(make([]byte, 1))
				close(reading)
				_, _ = r.Body.Read(make([]byte, 1))
			}()
			<-reading
		}
		_ = w.Head(&message.Response{Status: 101,
			Fields: message.Fields{message.Connection.Field("Upgrade"), message.Upgrade.Field("x")}})
		_, err := w.Switch()
		errs <- err
		w.Abort()
	}, nil)
	for _, path := range []string{"/reading", "/unread"} {
		c := dial(t, s.address)
		c.send(crlf("GET "+path+" HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: x",
			"Content-Length: 50") + "h")
		if err := <-errs; err == nil {
			t.Errorf("%s: the connection has another owner", path)
		}
		c.send("hello")
		_ = c.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panics != nil {
		t.Errorf("panics: %v", s.panics)
	}
}

func TestHandOver(t *testing.T) {
	s := serve(t, echo, func(h *host) {
		h.limits.H2C = true
		h.handOver = func(conn net.Conn) {
			defer conn.Close()
			b := make([]byte, 24)
			_, _ = io.ReadFull(conn, b)
			fmt.Fprintf(conn, "got %s", b)
		}
	})
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	for _, cut := range []int{0, 3, 16, 20} {
		c := dial(t, s.address)
		c.send(preface[:cut])
		c.send(preface[cut:])
		if got := c.rest(); got != "got "+preface {
			t.Errorf("cut at %d: %q", cut, got)
		}
	}
	if got := exchange(t, s.address, get("/")+preface); !strings.Contains(got, "400 Bad Request: http2-preface") {
		t.Errorf("behind a request: %q", got)
	}
}

func TestShutdown(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := serve(t, func(w message.Writer, r *message.Request) {
		if r.Path == "/slow" {
			close(entered)
			<-leave
		}
		echo(w, r)
	}, nil)
	idle := dial(t, s.address)
	idle.send(get("/"))
	idle.expect("HTTP/1.1 200 OK\r\n")
	slow := dial(t, s.address)
	slow.send(get("/slow"))
	fresh := dial(t, s.address)
	<-entered
	fixture.Holds(t, "two wait for a request", func() bool {
		all, waiting := s.Connections()
		return all == 3 && waiting == 2
	})
	s.Shutdown()
	if _, err := io.ReadAll(idle.reader); err != nil {
		t.Error(err)
	}
	fresh.send(get("/fresh"))
	if got := undated(fresh.rest()); got != ok("GET /fresh", closes) {
		t.Errorf("a new connection: %q", got)
	}
	close(leave)
	if got := undated(slow.rest()); got != ok("GET /slow", closes) {
		t.Errorf("a request under way: %q", got)
	}
}

// TestStrayReader checks that a goroutine that still reads a body after the handler has returned gets no bytes of the
// next request.
func TestStrayReader(t *testing.T) {
	stray := make(chan error, 1)
	s := serve(t, func(w message.Writer, r *message.Request) {
		if r.Body != nil {
			body := r.Body
			reading := make(chan struct{})
			go func() {
				close(reading)
				_, err := io.ReadAll(body)
				stray <- err
			}()
			<-reading
		}
		answer(w, 200, "")
	}, nil)
	for range 20 {
		c := dial(t, s.address)
		c.send(crlf("POST / HTTP/1.1", "Host: a", "Content-Length: 5") + "h")
		c.expect("HTTP/1.1 200 OK\r\n")
		if err := <-stray; err == nil {
			t.Error("a body that did not come has been read")
		}
		c.Close()
	}
}

// TestDuplex checks that the body may be read while the response is written, even by another goroutine, and that no 100
// Continue is sent after the head of the response.
func TestDuplex(t *testing.T) {
	s := serve(t, func(w message.Writer, r *message.Request) {
		pieces, stop := make(chan string), make(chan struct{})
		defer close(stop)
		go func(body io.Reader) {
			defer close(pieces)
			space := make([]byte, 100)
			for {
				n, err := body.Read(space)
				if n > 0 {
					select {
					case pieces <- string(space[:n]):
					case <-stop:
						return
					}
				}
				if err != nil {
					return
				}
			}
		}(r.Body)
		_ = w.Interim(103, nil)
		_ = w.Head(&message.Response{Status: 200, Length: -1})
		_ = w.Flush()
		for piece := range pieces {
			_, _ = io.WriteString(w, piece)
			_ = w.Flush()
		}
	}, nil)
	for range 20 {
		c := dial(t, s.address)
		c.send(crlf("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "Expect: 100-continue"))
		for line := ""; line != "HTTP/1.1 200 OK\r\n"; {
			var err error
			if line, err = c.reader.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		for line := ""; line != "\r\n"; {
			line, _ = c.reader.ReadString('\n')
		}
		for _, piece := range []string{"one", "three"} {
			text := fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
			c.send(text)
			c.expect(text)
		}
		c.send("0\r\n\r\n")
		c.expect("0\r\n\r\n")
		c.ended()
	}
}

// TestSplice checks that a body from another connection arrives complete.
func TestSplice(t *testing.T) {
	const size = 3 << 20
	source := accept(t, func(nc net.Conn) {
		defer nc.Close()
		_, _ = nc.Write(make([]byte, size))
	})
	s := serve(t, func(w message.Writer, r *message.Request) {
		nc, err := net.Dial("tcp", source)
		if err != nil {
			t.Error(err)
			return
		}
		defer nc.Close()
		length := int64(size)
		if r.Minor == 0 {
			length = -1
		}
		_ = w.Head(&message.Response{Status: 200, Length: length})
		if n, err := w.ReadFrom(&io.LimitedReader{R: nc, N: size}); n != size || err != nil {
			t.Error(n, err)
		}
	}, nil)
	for _, text := range []string{last("/"), crlf("GET / HTTP/1.0"), get("/") + last("/")} {
		got := exchange(t, s.address, text)
		if want := strings.Count(text, "GET") * size; len(got) < want || len(got) > want+400 {
			t.Errorf("%d bytes for %q", len(got), text)
		}
	}
}
