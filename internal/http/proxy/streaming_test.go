package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// serving starts an endpoint with a net/http server.
func serving(t testing.TB, secure bool, handler http.HandlerFunc) *endpoint {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	e := &endpoint{Listener: server.Listener}
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			e.connections.Add(1)
		}
	}
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return e
}

func pattern(size int) []byte {
	all := make([]byte, size)
	for i := range all {
		all[i] = byte(i * 7 >> 3)
	}
	return all
}

// protocols are the endpoint protocols that the proxy implements itself.
var protocols = []ir.BackendProtocol{ir.HTTP, ir.HTTPS}

// TestBodies checks that bodies of all sizes and framings arrive unchanged in both directions, including trailers.
func TestBodies(t *testing.T) { onFronts(t, bodies) }

func bodies(t *testing.T, ours bool) {
	for _, protocol := range protocols {
		e := serving(t, protocol == ir.HTTPS, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("X-Length", fmt.Sprint(r.ContentLength))
			if r.URL.Query().Has("known") {
				w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			}
			w.Header().Set("Trailer", "X-Sum")
			_, _ = w.Write(body)
			w.Header().Set("X-Sum", "7"+r.Trailer.Get("X-Checked"))
		})
		for _, f := range []ir.Forwarding{{}, {StreamRequest: true}, {BufferResponse: true},
			{StreamRequest: true, BufferResponse: true}} {
			f.Protocol = protocol
			front := inFront(t, settingsOf(ir.Proxy{Forwarding: f}), of(e))
			server, client := front.listen(t, ours)
			for _, size := range []int{0, 1, 4 << 10, 64<<10 + 1, 1 << 20} {
				for _, query := range []string{"", "?known"} {
					name := fmt.Sprintf("%s, streams %v, buffers %v, %d bytes%s", protocol, f.StreamRequest,
						f.BufferResponse, size, query)
					t.Run(name, func(t *testing.T) {
						there(t, client, server.URL+"/"+query, size, true)
						there(t, client, server.URL+"/"+query, size, false)
					})
				}
			}
		}
		if n := e.connections.Load(); n > 4 {
			t.Errorf("%s: %d connections for four pools", protocol, n)
		}
	}
}

// there sends a body and checks the echoed one. A body of unknown length has trailers.
func there(t *testing.T, client *http.Client, url string, size int, known bool) {
	t.Helper()
	sent, checked := pattern(size), ""
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	if !known {
		checked = "yes"
		r.Body, r.ContentLength, r.Trailer = io.NopCloser(bytes.NewReader(sent)), -1,
			http.Header{"X-Checked": {checked}}
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !bytes.Equal(got, sent) {
		t.Errorf("%d, and %d of %d bytes come back: %v", response.StatusCode, len(got), len(sent), err)
	}
	if got := response.Trailer.Get("X-Sum"); !strings.HasSuffix(url, "known") && got != "7"+checked {
		t.Errorf("trailers are %v, want %s", response.Trailer, checked)
	}
	if got := response.Header.Get("X-Length"); got != "-1" && got != fmt.Sprint(len(sent)) {
		t.Errorf("the endpoint got a body of %s bytes", got)
	}
}

// TestResponses checks how responses of endpoints reach the client.
func TestResponses(t *testing.T) { onFronts(t, answersOf) }

func answersOf(t *testing.T, ours bool) {
	long := strings.Repeat("x", 100_000)
	for name, c := range map[string]struct {
		method, answer, want string
		// again means that the connection is reused.
		again bool
	}{
		"nothing":      {"GET", "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n", "204 -1", true},
		"not modified": {"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "304 0", true},
		"HEAD":         {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "200 5", true},
		"HEAD, no end": {"HEAD", "HTTP/1.1 200 OK\r\n\r\n", "200 -1", true},
		"HEAD, chunks": {"HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "200 -1", true},
		"until close":  {"GET", "HTTP/1.1 200 OK\r\n\r\nok", "200 -1 ok", false},
		"old":          {"GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 2 ok", false},
		"closes": {"GET", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
			"200 2 ok", false},
		"chunks": {"GET",
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1;x=y\r\nk\r\n0\r\n\r\n", "200 2 ok", true},
		"empty chunks":   {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "200 0", true},
		"no chunks":      {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno", "cut", false},
		"half of chunks": {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok", "cut", false},
		"no last chunk":  {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", "cut", false},
		"half":           {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", "cut", false},
		"long": {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + long,
			"200 100000 " + long, true},
		"half of long": {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + long, "cut", false},
		"long head": {"GET", "HTTP/1.1 200 OK\r\nX-A: " + long + "\r\nContent-Length: 2\r\n\r\nok",
			"200 2 ok", true},
		"hop by hop": {"GET",
			"HTTP/1.1 200 OK\r\nConnection: X-Secret\r\nX-Secret: x\r\nServer: x\r\nContent-Length: 0\r\n\r\n",
			"200 0", true},
		"compressed": {"GET", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok",
			"200 2 ok", true},
	} {
		t.Run(name, func(t *testing.T) {
			ends := strings.HasPrefix(c.want, "cut") || name == "until close"
			e := serve(t, func(conn net.Conn, r *http.Request) bool { return respondWith(c.answer)(conn, r) && !ends })
			server, client := inFront(t, settings(), of(e)).listen(t, ours)
			client.Transport.(*http.Transport).DisableCompression = true
			want := c.want
			if ours && strings.Contains(c.answer, "chunked") {
				// Unlike net/http, our server adds no Content-Length to a short response.
				want = strings.Replace(strings.Replace(want, "200 2 ok", "200 -1 ok", 1), "200 0", "200 -1", 1)
			}
			for range 2 {
				if got := answered(t, client, c.method, server.URL); got != want {
					t.Errorf("got %.100q, want %.100q", got, want)
				}
			}
			if n := e.connections.Load(); c.again && n != 1 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// answered returns the status, the length and the body of a response.
func answered(t *testing.T, client *http.Client, method, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		return "cut"
	}
	defer response.Body.Close()
	for _, name := range []string{"Server", "Via", "X-Secret", "Keep-Alive"} {
		if value := response.Header.Get(name); value != "" {
			t.Errorf("%s: %s", name, value)
		}
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "cut"
	}
	length := response.ContentLength
	if response.StatusCode == http.StatusNoContent {
		length = -1
	}
	return strings.TrimSpace(fmt.Sprintf("%d %d %s", response.StatusCode, length, body))
}

// TestBothWaysAtOnce checks that a response can begin long before the end of the request, and that each piece is
// forwarded at once.
func TestBothWaysAtOnce(t *testing.T) { onFronts(t, bothWaysAtOnce) }

func bothWaysAtOnce(t *testing.T, ours bool) {
	for _, protocol := range protocols {
		t.Run(string(protocol), func(t *testing.T) {
			e := serving(t, protocol == ir.HTTPS, func(w http.ResponseWriter, r *http.Request) {
				control := http.NewResponseController(w)
				_ = control.EnableFullDuplex()
				_ = control.Flush()
				for piece := make([]byte, 32<<10); ; {
					n, err := r.Body.Read(piece)
					_, _ = w.Write(piece[:n])
					_ = control.Flush()
					if err != nil {
						return
					}
				}
			})
			s := settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: protocol, StreamRequest: true}})
			server, client := inFront(t, s, of(e)).listen(t, ours)
			reader, writer := io.Pipe()
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, reader)
			response, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			for _, size := range []int{10, 1, 100_000} {
				sent, got := pattern(size), make([]byte, size)
				go func() { _, _ = writer.Write(sent) }()
				if _, err := io.ReadFull(response.Body, got); err != nil || !bytes.Equal(got, sent) {
					t.Fatalf("%d bytes do not come back: %v", size, err)
				}
			}
			writer.Close()
			if rest, err := io.ReadAll(response.Body); err != nil || len(rest) > 0 {
				t.Errorf("%q is left, %v", rest, err)
			}
		})
	}
}

// TestEarlyResponse checks that the response of an endpoint that does not read the whole body reaches the client.
func TestEarlyResponse(t *testing.T) { onFronts(t, earlyResponse) }

func earlyResponse(t *testing.T, ours bool) {
	const answer = "HTTP/1.1 413 No\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"
	listener := fixture.Listen(t)
	fixture.Serve(listener, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1000))
		_, _ = io.WriteString(conn, answer)
		// Unread data would reset the connection, and the response would be lost.
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
	})
	for _, streams := range []bool{true, false} {
		f := inFront(t, settingsOf(ir.Proxy{Forwarding: ir.Forwarding{StreamRequest: streams}}),
			of(&endpoint{Listener: listener}))
		server, client := f.listen(t, ours)
		body := io.Reader(bytes.NewReader(pattern(1 << 20)))
		if streams {
			var writer *io.PipeWriter
			body, writer = io.Pipe()
			defer writer.Close()
			go func() { _, _ = writer.Write([]byte("begin")) }()
		}
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(response.Body); err != nil || string(got) != "no" ||
			response.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%d %q, %v", response.StatusCode, got, err)
		}
		response.Body.Close()
		if err := fixture.Receive(t, "the end of the request", f.errs); err != nil {
			t.Error(err)
		}
	}
}

// TestBodyLimits checks that too large bodies are rejected, with and without a declared length.
func TestBodyLimits(t *testing.T) {
	for _, streams := range []bool{true, false} {
		s := settingsOf(ir.Proxy{Forwarding: ir.Forwarding{StreamRequest: streams, MaxBody: 100_000}})
		f := inFront(t, s, of(serving(t, false,
			func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })))
		for size, want := range map[int]string{100_000: "200", 100_001: "error 413", 200_000: "error 413"} {
			for _, known := range []bool{true, false} {
				r := request(t, http.MethodPost, strings.Repeat("x", size))
				if !known {
					r.ContentLength = -1
				}
				w := httptest.NewRecorder()
				if got, _, _ := strings.Cut(outcome(w, forwardOnce(f.pool, w, r, s, f.backend)), " x"); got != want {
					t.Errorf("%d bytes, streamed %v, known %v: %s", size, streams, known, got)
				}
			}
		}
	}
}

// late is a body that does not arrive in time.
type late struct{}

func (late) Read([]byte) (int, error) { return 0, context.DeadlineExceeded }

func TestASlowBody(t *testing.T) {
	for _, streams := range []bool{true, false} {
		r := request(t, http.MethodPost, "")
		r.Body, r.ContentLength = io.NopCloser(late{}), 10
		s := settingsOf(ir.Proxy{Forwarding: ir.Forwarding{StreamRequest: streams}})
		if got := outcomeOf(pool(t), r, s, of(serve(t, respondWith(fine)))); got != "error 408" {
			t.Errorf("streamed %v: %s", streams, got)
		}
	}
}

// TestEndpointReadsNothing checks that a body that cannot be sent to the endpoint causes a timeout, with and
// without a declared length.
func TestEndpointReadsNothing(t *testing.T) {
	e := &endpoint{Listener: fixture.Listen(t)}
	s := settings()
	s.Write, s.Tries = 100*time.Millisecond, 1
	if got := outcomeOf(pool(t), request(t, http.MethodPost, strings.Repeat("x", 20<<20)), s,
		of(e)); got != "error 504" {
		t.Error(got)
	}
}

// TestEvents checks that each event reaches the client before the next one is sent.
func TestEvents(t *testing.T) { onFronts(t, events) }

func events(t *testing.T, ours bool) {
	for _, head := range []string{"Transfer-Encoding: chunked",
		"Content-Length: 21\r\nContent-Type: text/event-stream"} {
		next := make(chan string)
		listener := fixture.Listen(t)
		fixture.Serve(listener, func(conn net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+head+"\r\n\r\n")
			for text := range next {
				if strings.Contains(head, "chunked") {
					text = fmt.Sprintf("%x\r\n%s\r\n", len(text), text)
				}
				_, _ = io.WriteString(conn, text)
			}
		})
		server, client := inFront(t, settings(), of(&endpoint{Listener: listener})).listen(t, ours)
		response, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		reader := bufio.NewReader(response.Body)
		for _, want := range []string{"data: 1", "data: 2"} {
			next <- want + "\n\n"
			line, err := reader.ReadString('\n')
			if _, _ = reader.ReadString('\n'); err != nil || line != want+"\n" {
				t.Errorf("%s: %q, %v", head, line, err)
			}
		}
		response.Body.Close()
		close(next)
	}
}

// TestLongResponsePauses checks timeouts while the kernel copies a body: slow is distinguished from silent, and the
// end of the endpoint from the end of the client.
func TestLongResponsePauses(t *testing.T) { onFronts(t, longResponsePauses) }

func longResponsePauses(t *testing.T, ours bool) {
	const size, pieces = 400_000, 8
	for name, c := range map[string]struct {
		sent int
		want error
	}{
		"all of it": {pieces, nil}, "silence": {pieces / 2, exchange.ErrAborted},
	} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			defer close(release)
			e := serve(t, func(conn net.Conn, _ *http.Request) bool {
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
				pace := time.NewTicker(100 * time.Millisecond)
				defer pace.Stop()
				for range c.sent {
					<-pace.C
					_, _ = conn.Write(make([]byte, size/pieces))
				}
				if c.want != nil {
					<-release
				}
				return true
			})
			s := settings()
			s.Read = 400 * time.Millisecond
			// On a busy machine the endpoint may occasionally be silent for longer, so the test retries.
			fixture.Eventually(t, "the response", func() error {
				backend := of(e, refusing(t))
				f := inFront(t, s, backend)
				server, client := f.listen(t, ours)
				got := answered(t, client, http.MethodGet, server.URL)
				if err := fixture.Receive(t, "the end", f.errs); !errors.Is(err, c.want) ||
					(got == "cut") != (c.want != nil) || failing(backend, e) != (c.want != nil) {
					return fmt.Errorf("%d bytes, failing %t, error %w", len(got), failing(backend, e), err)
				}
				return nil
			})
		})
	}
	t.Run("the client leaves", func(t *testing.T) {
		e := serve(t, func(conn net.Conn, _ *http.Request) bool {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
			for {
				if _, err := conn.Write(make([]byte, 1<<20)); err != nil {
					return false
				}
			}
		})
		backend := of(e, refusing(t))
		f := inFront(t, settings(), backend)
		server, client := f.listen(t, ours)
		response, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.CopyN(io.Discard, response.Body, 10<<20)
		response.Body.Close()
		if err := fixture.Receive(t, "the end", f.errs); !errors.Is(err, exchange.ErrAborted) || failing(backend, e) {
			t.Errorf("%v, failing is %v", err, failing(backend, e))
		}
	})
}

// TestClientLeavesItsUpload checks that the endpoint notices when the client leaves during an upload.
func TestClientLeavesItsUpload(t *testing.T) { onFronts(t, aClientThatLeavesItsUpload) }

func aClientThatLeavesItsUpload(t *testing.T, ours bool) {
	for _, protocol := range protocols {
		begun, ended := make(chan struct{}, 1), make(chan error, 1)
		e := serving(t, protocol == ir.HTTPS, func(_ http.ResponseWriter, r *http.Request) {
			begun <- struct{}{}
			_, err := io.Copy(io.Discard, r.Body)
			ended <- err
		})
		backend := of(e, refusing(t))
		f := inFront(t, settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: protocol, StreamRequest: true}}),
			backend)
		server, _ := f.listen(t, ours)
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n")
		fixture.Receive(t, "the beginning", begun)
		conn.Close()
		if err := fixture.Receive(t, "the end at the endpoint", ended); err == nil {
			t.Error("it takes it for all of the body")
		}
		if err := fixture.Receive(t, "the end", f.errs); err == nil || failing(backend, e) {
			t.Errorf("%v, failing is %v", err, failing(backend, e))
		}
	}
}

// TestEndpointClosesDuringAnUpload checks that the client gets an error if the endpoint closes the connection during an
// upload, and is not taken for a client that left.
func TestEndpointClosesDuringAnUpload(t *testing.T) { onFronts(t, anEndpointThatLeavesAnUpload) }

func anEndpointThatLeavesAnUpload(t *testing.T, ours bool) {
	listener := fixture.Listen(t)
	fixture.Serve(listener, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1000)) })
	for _, protocol := range []ir.BackendProtocol{ir.HTTP, ir.GRPC, ir.FastCGI} {
		e := &endpoint{Listener: listener}
		backend := of(e, refusing(t))
		f := inFront(t, settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: protocol, StreamRequest: true}}),
			backend)
		server, _ := f.listen(t, ours)
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nbegin")
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if response.Body.Close(); response.StatusCode != http.StatusBadGateway || !failing(backend, e) {
			t.Errorf("%s: %s, failing is %v", protocol, response.Status, failing(backend, e))
		}
	}
}
