package proxy_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// unreachable returns an endpoint whose pod has been deleted, so that connections to it are never established.
func unreachable(t *testing.T) *endpoint {
	t.Helper()
	return &endpoint{Listener: named{address: fixture.Unreachable(t)}}
}

// named is a listener that only has an address.
type named struct {
	net.Listener
	address net.Addr
}

func (n named) Addr() net.Addr { return n.address }

// TestEndpointRemovedWhileDialled checks that dialling stops when the pod is removed. The next endpoint is
// tried for any method, or the client gets an error at once if there is no other endpoint.
func TestEndpointRemovedWhileDialled(t *testing.T) {
	for _, protocol := range []ir.BackendProtocol{ir.HTTP, ir.HTTPS, ir.GRPC, ir.FastCGI} {
		t.Run(string(protocol), func(t *testing.T) {
			silent := unreachable(t)
			// These settings allow no retries, so only the removal of the endpoint leads to another one.
			s := settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: protocol}}, []ir.RetryOn{}...)
			s.Tries = 1
			backend := of(silent)
			choice, _ := backend.Pick(nil, nil)
			got := while(t.Context(), func() string {
				return outcomeOf(pool(t), request(t, http.MethodPost, "all"),
					s, backend)
			})
			fixture.Eventually(t, "the request", func() error {
				if n := choice.Endpoint.InFlight(); n != 1 {
					return fmt.Errorf("%d are under way", n)
				}
				return nil
			})
			want := "error 503"
			if protocol == ir.HTTP {
				want = "200 ok"
				backend.SetEndpoints([]ir.Endpoint{{Address: serve(t, respondWith(fine)).Addr().String()}})
			} else {
				backend.SetEndpoints(nil)
			}
			if got := fixture.Receive(t, "the answer", got); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
	t.Run("the connect timeout", func(t *testing.T) {
		s := settings()
		s.Connect, s.Tries = 300*time.Millisecond, 1
		if got := outcomeOf(pool(t), request(t, http.MethodGet, ""), s, of(unreachable(t))); got != "error 504" {
			t.Errorf("%s of an endpoint that is there and does not answer", got)
		}
	})
}

// TestFailedHandshake checks that another endpoint is tried after a failed TLS handshake, for any method, because
// the endpoint has not received the request.
func TestFailedHandshake(t *testing.T) {
	secured := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok"))
	}))
	defer secured.Close()
	well := &endpoint{Listener: secured.Listener}
	for name, first := range map[string]*endpoint{
		"it speaks no TLS": serve(t, respondWith(fine)), "it hangs up": serve(t, hangUp),
		"it wants another version": old(t),
	} {
		t.Run(name, func(t *testing.T) {
			s := settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: ir.HTTPS}}, ir.RetryOnError)
			if got := outcomeOf(pool(t), request(t, http.MethodPost, "all"), s, of(first, well)); got != "200 ok" {
				t.Errorf("%s", got)
			}
		})
	}
	t.Run("it says nothing", func(t *testing.T) {
		s := settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: ir.HTTPS}})
		s.Connect, s.Tries = 300*time.Millisecond, 1
		if got := outcomeOf(pool(t), request(t, http.MethodPost, "all"), s,
			of(&endpoint{Listener: fixture.Listen(t)})); got != "error 504" {
			t.Errorf("%s, and the handshake is a part of connecting", got)
		}
	})
}

// old starts an endpoint that has no TLS version in common with the proxy.
func old(t *testing.T) *endpoint {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{MaxVersion: tls.VersionTLS10}
	server.StartTLS()
	t.Cleanup(server.Close)
	return &endpoint{Listener: server.Listener}
}
