package proxy_test

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/fixture"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/proxy"
)

// unreachable is a pod that has gone.
func unreachable(t *testing.T) *endpoint {
	t.Helper()
	return &endpoint{Listener: named{address: fixture.Unreachable(t)}}
}

// named is nothing but an address.
type named struct {
	net.Listener
	address net.Addr
}

func (n named) Addr() net.Addr { return n.address }

// A pod that goes while a connection to it is opened is not waited for: the next endpoint is asked, by any method, or the
// client is told at once that there is none.
func TestAnEndpointThatLeavesWhileItIsDialled(t *testing.T) {
	silent, well := unreachable(t), serve(t, says(fine))
	ways := map[string]func(*http.Request, *proxy.Settings, *inTurn) string{
		"short": func(r *http.Request, s *proxy.Settings, e *inTurn) string {
			w := httptest.NewRecorder()
			return outcome(w, send(pool(t), w, r, s, e))
		},
		"long": func(r *http.Request, s *proxy.Settings, e *inTurn) string { return long(pool(t), r, s, e) },
	}
	for name, ask := range ways {
		t.Run(name, func(t *testing.T) {
			// Nothing lets another endpoint follow but that this one has gone.
			s := settings([]ir.RetryOn{}...)
			s.Tries = 1
			endpoints := of(silent, well)
			endpoints.gone.Store(true)
			if got := ask(request(t, http.MethodPost, "all"), s, endpoints); got != "200 ok" {
				t.Errorf("%s", got)
			}
			if endpoints.next != 2 {
				t.Errorf("%d endpoints were asked", endpoints.next)
			}
		})
	}
	t.Run("the connect timeout", func(t *testing.T) {
		s := settings()
		s.Connect, s.Tries = 300*time.Millisecond, 1
		w := httptest.NewRecorder()
		if got := outcome(w, send(pool(t), w, request(t, http.MethodGet, ""), s, of(silent))); got != "error 504" {
			t.Errorf("%s of an endpoint that is there and does not answer", got)
		}
	})
}

// An endpoint that fails in the TLS handshake has got nothing, so that another one may have the request, whatever its method.
func TestAHandshakeThatFails(t *testing.T) {
	secured := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }))
	defer secured.Close()
	well := &endpoint{Listener: secured.Listener}
	for name, first := range map[string]*endpoint{
		"it speaks no TLS": serve(t, says(fine)), "it hangs up": serve(t, hangUp), "it wants another version": old(t),
	} {
		t.Run(name, func(t *testing.T) {
			s := settings(ir.RetryOnError)
			s.Protocol = ir.HTTPS
			endpoints := of(first, well)
			if got := long(pool(t), request(t, http.MethodPost, "all"), s, endpoints); got != "200 ok" {
				t.Errorf("%s", got)
			}
		})
	}
	t.Run("it says nothing", func(t *testing.T) {
		s := settings()
		s.Protocol, s.Connect, s.Tries = ir.HTTPS, 300*time.Millisecond, 1
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		if got := long(pool(t), request(t, http.MethodPost, "all"), s, of(&endpoint{Listener: listener})); got != "error 504" {
			t.Errorf("%s, and the handshake is a part of connecting", got)
		}
	})
}

// old is an endpoint that has nothing in common with us.
func old(t *testing.T) *endpoint {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{MaxVersion: tls.VersionTLS10}
	server.StartTLS()
	t.Cleanup(server.Close)
	return &endpoint{Listener: server.Listener}
}

// How fast an endpoint is shows in the head of its answer. A client that is slow to send is no reason to find it slow.
func TestWhatAnEndpointIsWaitedFor(t *testing.T) {
	e := serve(t, says(fine))
	endpoints := of(e)
	if got := forward(pool(t), request(t, http.MethodGet, ""), endpoints); got != "200 ok" {
		t.Fatal(got)
	}
	if len(endpoints.answered) != 1 || !endpoints.answered[0].IsZero() {
		t.Errorf("the short way: %v", endpoints.answered)
	}
	endpoints = of(e)
	r := request(t, http.MethodPut, "body")
	r.ContentLength = -1
	s, before := settings(), time.Now()
	s.StreamRequest = true
	if got := long(pool(t), r, s, endpoints); got != "200 ok" {
		t.Fatal(got)
	}
	if len(endpoints.answered) != 1 || endpoints.answered[0].Before(before) {
		t.Errorf("the long way: %v", endpoints.answered)
	}
}
