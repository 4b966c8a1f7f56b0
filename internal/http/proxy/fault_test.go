package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// deaf is a client that fails to accept a response.
type deaf struct{ *httptest.ResponseRecorder }

func (deaf) Write([]byte) (int, error) { return 0, errors.New("connection reset by peer") }

// TestFaultsOfClientsDoNotEject checks that failures caused by clients do not eject healthy endpoints.
func TestFaultsOfClientsDoNotEject(t *testing.T) {
	// A single endpoint would never be ejected, so there is a second one.
	spare := refusing(t)
	blameless := func(t *testing.T, e *endpoint, r *http.Request, want string) {
		t.Helper()
		s, backend := settingsOf(ir.Proxy{Forwarding: ir.Forwarding{StreamRequest: r.ContentLength < 0}}), of(e, spare)
		if got := outcomeOf(pool(t), r, s, backend); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if failing(backend, e) {
			t.Error("the endpoint is said to have failed")
		}
	}
	t.Run("it leaves before the answer", func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		e := serve(t, func(conn net.Conn, _ *http.Request) bool {
			leave()
			_, _ = conn.Read(make([]byte, 1))
			return false
		})
		blameless(t, e, request(t, http.MethodGet, "").WithContext(ctx), "error 499")
	})
	t.Run("it takes no answer", func(t *testing.T) {
		e := serve(t, respondWith(fine))
		backend := of(e, spare)
		err := forwardOnce(pool(t), deaf{httptest.NewRecorder()}, request(t, http.MethodGet, ""), settings(), backend)
		if !errors.Is(err, exchange.ErrAborted) {
			t.Errorf("%v, want that the answer is cut off", err)
		}
		if failing(backend, e) {
			t.Error("the endpoint is said to have failed")
		}
	})
	t.Run("its request cannot be written", func(t *testing.T) {
		r := request(t, http.MethodGet, "")
		r.Header["X-Bad"] = []string{"a\r\nb"}
		blameless(t, serve(t, respondWith(fine)), r, "error 400")
	})
	t.Run("its body breaks off", func(t *testing.T) {
		r := request(t, http.MethodPut, "")
		r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("half"),
			ending{errors.New("malformed chunk")})), -1
		blameless(t, serve(t, respondWith(fine)), r, "error 400")
	})
	t.Run("its body is too short", func(t *testing.T) {
		r := request(t, http.MethodPut, "short")
		r.ContentLength = 10
		blameless(t, serve(t, respondWith(fine)), r, "error 400")
	})
}

// TestFaultsOfEndpointsEject checks that failures of an endpoint do eject it, as a control for the test above.
func TestFaultsOfEndpointsEject(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(net.Conn, *http.Request) bool
		want   string
	}{
		"it hangs up": {hangUp, "error 502"},
		"half of it":  {respondWith("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), exchange.ErrAborted.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			e := serve(t, func(conn net.Conn, r *http.Request) bool { return c.answer(conn, r) && false })
			backend := of(e, refusing(t))
			if got := outcomeOf(pool(t), request(t, http.MethodPost, "body"), settings(),
				backend); !strings.Contains(got, c.want) {
				t.Errorf("%s, want %s", got, c.want)
			}
			if !failing(backend, e) {
				t.Error("it is not passed over")
			}
		})
	}
}

// ending is a reader that returns an error.
type ending struct{ error }

func (e ending) Read([]byte) (int, error) { return 0, e.error }

// TestABodyIsNotSentInPieces checks that a request is not retried if a part of its unbuffered body was sent to an
// endpoint. The next endpoint would take the rest for the whole body.
func TestABodyIsNotSentInPieces(t *testing.T) {
	streaming := func(on ...ir.RetryOn) *front {
		return inFront(t, settingsOf(ir.Proxy{Forwarding: ir.Forwarding{StreamRequest: true}}, on...), nil)
	}
	for name, first := range map[string]func(net.Conn, *http.Request) bool{
		"it hangs up":      hangUp,
		"it answers badly": respondWith("HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno"),
	} {
		t.Run(name, func(t *testing.T) {
			second := serve(t, respondWith(fine))
			r := request(t, http.MethodPut, strings.Repeat("x", 100<<10))
			r.ContentLength = -1
			f := streaming(ir.RetryOnError, ir.RetryOn503)
			got := outcomeOf(f.pool, r, f.settings, of(serve(t, first), second))
			if got != "error 502" && got != "503 no" || second.requests.Load() != 0 {
				t.Errorf("%s, and the second endpoint got %d requests", got, second.requests.Load())
			}
		})
	}
	t.Run("nobody is there", func(t *testing.T) {
		f := streaming(ir.RetryOnError)
		if got := outcomeOf(f.pool, request(t, http.MethodPost, "all"), f.settings,
			of(refusing(t), serve(t, respondWith(fine)))); got != "200 ok" {
			t.Errorf("%s, although the first endpoint got nothing", got)
		}
	})
}

// TestEachAttemptIsAccountedFor checks that the result of each attempt is reported to the load balancer exactly once.
func TestEachAttemptIsAccountedFor(t *testing.T) {
	first, second, third := refusing(t), serve(t, hangUp), serve(t, respondWith(fine))
	backend := of(first, second, third, refusing(t))
	if got := forward(pool(t), request(t, http.MethodGet, ""), backend); got != "200 ok" {
		t.Error(got)
	}
	if !failing(backend, first) || !failing(backend, second) || failing(backend, third) {
		t.Errorf("failing: %v %v %v", failing(backend, first), failing(backend, second), failing(backend, third))
	}
	for range 4 {
		if c, _ := backend.Pick(nil, nil); c.Endpoint.InFlight() != 0 {
			t.Errorf("%d requests are under way", c.Endpoint.InFlight())
		}
	}
}
