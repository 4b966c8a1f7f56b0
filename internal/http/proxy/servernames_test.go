package proxy_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/trust"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// secure returns the connections for a TLS configuration. store holds the contents of its Secret.
func secure(t testing.TB, p *proxy.Pool, settings *ir.BackendTLS, store *trust.Store) *proxy.Secured {
	t.Helper()
	s, err := p.Secure(settings, store.Authority(settings.Secret))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// verified is an endpoint with a certificate, and the way to it whose server name is $host. It responds with the SNI.
type verified struct {
	*endpoint
	pool    *proxy.Pool
	way     *proxy.Secured
	backend *balancer.Backend
	// opened and closed count the connections.
	opened, closed atomic.Int32
}

// byHost starts an endpoint with a certificate for names.
func byHost(t *testing.T, names ...string) *verified {
	t.Helper()
	v := &verified{pool: pool(t)}
	ca := fixture.Authority(t, nil, "ca")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.ServerName)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{
		fixture.Identify(t, ca, &x509.Certificate{DNSNames: names}).Pair(),
	}}
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			v.opened.Add(1)
		} else if state == http.StateClosed {
			v.closed.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	v.endpoint = &endpoint{Listener: server.Listener}
	v.backend = of(v.endpoint)
	settings := ir.BackendTLS{Secret: ir.Name{Namespace: "shop", Name: "ca"}, Verify: true, Depth: 1, Name: "$host",
		SendName: true}
	store := trust.NewStore()
	store.Update(&document.Delta{Hosts: map[string]*document.Host{"a": {
		Routes: []*document.Route{{Destination: document.Destination{TLS: &settings}}},
	}}})
	store.SetSecret(settings.Secret, map[string][]byte{"ca.crt": ca.PEM()}, true)
	v.way = secure(t, v.pool, &settings, store)
	return v
}

// ask sends a request with a Host header.
func (v *verified) ask(t *testing.T, host string) string {
	s := settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: ir.HTTPS}})
	s.Tries = 1
	f := &front{pool: v.pool, settings: s, backend: v.backend, secured: v.way, errs: make(chan error, 1)}
	w, r := httptest.NewRecorder(), request(t, http.MethodGet, "")
	r.Host = host
	f.ServeHTTP(w, r)
	return outcome(w, <-f.errs)
}

// TestServerNames checks that each request is verified for the server name that its variables give, and that a
// connection for one name is not used for another name.
func TestServerNames(t *testing.T) {
	v := byHost(t, "a.example", "*.w.example")
	for _, c := range []struct {
		host, want string
		opened     int32
	}{
		{"a.example", "200 a.example", 1},
		{"a.example", "200 a.example", 1},
		{"b.example", "error 502", 2},
		{"x.w.example", "200 x.w.example", 3},
		{"A.Example:8443", "200 a.example", 3},
		{"b.example", "error 502", 4},
		{"127.0.0.1", "error 502", 5},
		{strings.Repeat("a", 256), "error 500", 5},
	} {
		if got := v.ask(t, c.host); got != c.want || v.opened.Load() != c.opened {
			t.Errorf("%s: %s on %d connections, want %s on %d", c.host, got, v.opened.Load(), c.want, c.opened)
		}
	}
	// The client has chosen the name, so the endpoint stays in use.
	v.backend = of(v.endpoint, serve(t, hangUp))
	if got := v.ask(t, "b.example"); got != "error 502" || failing(v.backend, v.endpoint) {
		t.Errorf("%s; a name of the client has ejected the endpoint", got)
	}
	if _, err := v.pool.Secure(&ir.BackendTLS{Name: "$"}, nil); err == nil {
		t.Error("a name that is no template is accepted")
	}
}

// TestManyServerNames checks that the number of names with idle connections is limited, that a name in use stays, and
// that Release closes all connections.
func TestManyServerNames(t *testing.T) {
	v := byHost(t, "a.example", "*.w.example")
	const names = 600
	for i := range names {
		for _, host := range []string{fmt.Sprintf("n%d.w.example", i), "a.example"} {
			if got := v.ask(t, host); got != "200 "+host {
				t.Fatalf("%s: %s", host, got)
			}
		}
	}
	if got := v.opened.Load(); got != names+1 {
		t.Errorf("%d connections for %d names", got, names+1)
	}
	open := func() int32 { return v.opened.Load() - v.closed.Load() }
	fixture.Holds(t, "connections for old names are closed", func() bool { return open() <= 256 })
	v.way.Release()
	fixture.Holds(t, "all connections are closed", func() bool { return open() == 0 })
}
