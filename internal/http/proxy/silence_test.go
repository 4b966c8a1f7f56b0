package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func TestHangingEndpoint(t *testing.T) {
	s := settings()
	s.Read = 50 * time.Millisecond
	timeout(t, s)
}

// TestStatusOfTimeout checks that logs have the status 504 for each attempt that has timed out, like nginx.
func TestStatusOfTimeout(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	silent := func(net.Conn, *http.Request) bool { <-release; return false }
	s := settings(ir.RetryOnTimeout)
	s.Read, s.Tries = 50*time.Millisecond, 3
	var attempts []exchange.Attempt
	f := &front{pool: pool(t), settings: s, backend: of(serve(t, silent), serve(t, silent), serve(t, silent)),
		errs: make(chan error, 1), tried: func(all []exchange.Attempt) { attempts = all }}
	f.ServeHTTP(httptest.NewRecorder(), request(t, http.MethodGet, ""))
	if err := <-f.errs; exchange.StatusOf(err) != http.StatusGatewayTimeout || len(attempts) != 3 {
		t.Fatalf("the error is %v after the attempts %v", err, attempts)
	}
	for _, attempt := range attempts {
		if attempt.Status != http.StatusGatewayTimeout {
			t.Errorf("the status of an attempt is %d", attempt.Status)
		}
	}
}

// TestSlowButAlive checks that the timeout limits the time without data, not the duration of the whole response.
func TestSlowButAlive(t *testing.T) {
	e := serve(t, func(conn net.Conn, _ *http.Request) bool {
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n")
		pace := time.NewTicker(20 * time.Millisecond)
		defer pace.Stop()
		for range 20 {
			<-pace.C
			_, err = io.WriteString(conn, "x")
		}
		return err == nil
	})
	s := settings()
	s.Read = 200 * time.Millisecond
	// On a busy machine the endpoint may occasionally be silent for longer, so the test retries.
	fixture.Eventually(t, "all of it", func() error {
		w := httptest.NewRecorder()
		if got := outcome(w, forwardOnce(pool(t), w, request(t, http.MethodGet, ""), s, of(e))); got != "200 "+
			strings.Repeat("x", 20) {
			return errors.New(got)
		}
		return nil
	})
}

// slowly is a client that reads slowly: it calls passes before it takes a part of the response.
type slowly struct {
	*httptest.ResponseRecorder
	passes func()
}

// timeout waits until a request to a silent endpoint has failed because of the read timeout of the settings. A timeout
// of the same length that started before has then passed, too.
func timeout(t *testing.T, s *proxy.Settings) {
	t.Helper()
	release := make(chan struct{})
	defer close(release)
	e := serve(t, func(net.Conn, *http.Request) bool { <-release; return false })
	once := *s
	once.Tries = 1
	w := httptest.NewRecorder()
	if got := outcome(w, forwardOnce(pool(t), w, request(t, http.MethodGet, ""), &once, of(e))); got != "error 504" {
		t.Errorf("a silent endpoint gives %s", got)
	}
}

func (s slowly) Write(b []byte) (int, error) {
	s.passes()
	return s.ResponseRecorder.Write(b)
}

// TestSlowClientIsNotASlowEndpoint checks that the endpoint's timeout does not run while the client is slow.
func TestSlowClientIsNotASlowEndpoint(t *testing.T) {
	const size = 300_000
	e := serve(t, respondWith(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s",
		size, strings.Repeat("x", size))))
	s := settings()
	s.Read = 50 * time.Millisecond
	// On a busy machine the endpoint may occasionally be slow, so the test retries.
	fixture.Eventually(t, "all of it", func() error {
		w := slowly{httptest.NewRecorder(), func() { timeout(t, s) }}
		if err := forwardOnce(pool(t), w, request(t, http.MethodGet, ""), s, of(e)); err != nil ||
			w.Body.Len() != size {
			return fmt.Errorf("%d bytes, error %w", w.Body.Len(), err)
		}
		return nil
	})
}

// TestAConnectionOutlivesItsDeadline checks that the deadline of one request does not affect the next request on the
// connection.
func TestAConnectionOutlivesItsDeadline(t *testing.T) {
	s := settings()
	s.Read = 20 * time.Millisecond
	// On a busy machine the endpoint may occasionally be slow, so the test retries.
	fixture.Eventually(t, "all of them", func() error {
		e, p := serve(t, respondWith(fine)), pool(t)
		for range 4 {
			w := httptest.NewRecorder()
			if got := outcome(w, forwardOnce(p, w, request(t, http.MethodGet, ""), s, of(e))); got != "200 ok" {
				return errors.New(got)
			}
			timeout(t, s)
		}
		if n := e.connections.Load(); n != 1 {
			return fmt.Errorf("%d connections", n)
		}
		return nil
	})
}

// unread is a writer that signals when reading of the request body is stopped.
type unread struct {
	*httptest.ResponseRecorder
	halted chan struct{}
}

func (u *unread) SetReadDeadline(time.Time) error {
	close(u.halted)
	return nil
}

// stalled is a body whose client sends nothing for too long. As in net/http, the request ends before Read returns; here
// Read returns as late as possible.
type stalled struct {
	end    context.CancelFunc
	halted chan struct{}
}

func (s *stalled) Read([]byte) (int, error) {
	s.end()
	<-s.halted
	return 0, os.ErrDeadlineExceeded
}

// TestPausingClientGets408 checks that a stalled body results in 408, regardless of which goroutine first notices
// that the request has ended.
func TestPausingClientGets408(t *testing.T) {
	for _, protocol := range []ir.BackendProtocol{ir.HTTP, ir.FastCGI} {
		ctx, end := context.WithCancel(t.Context())
		w := &unread{httptest.NewRecorder(), make(chan struct{})}
		r := request(t, http.MethodPost, "").WithContext(ctx)
		r.ContentLength = 10
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader("some"), &stalled{end, w.halted}))
		e := &endpoint{Listener: fixture.Listen(t)}
		fixture.Serve(e, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
		s := settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: protocol, StreamRequest: true}})
		if got := outcome(w.ResponseRecorder, forwardOnce(pool(t), w, r, s, of(e))); got != "error 408" {
			t.Errorf("%s: %s", protocol, got)
		}
	}
}
