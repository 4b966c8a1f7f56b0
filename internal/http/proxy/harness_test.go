package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/httpserver"
	"github.com/k8singress/k8singress/internal/http/limits"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

// patience is how long a test waits for an expected event.
const patience = fixture.Patience

// settings returns the settings of most tests. on replaces the retry conditions if it is not empty.
func settings(on ...ir.RetryOn) *proxy.Settings { return settingsOf(ir.Proxy{}, on...) }

func settingsOf(p ir.Proxy, on ...ir.RetryOn) *proxy.Settings {
	p.Connect, p.Read, p.Write, p.On = patience, patience, patience, on
	if p.MaxBody == 0 {
		p.MaxBody = ir.NoLimit
	}
	s, err := proxy.NewSettings(p.WithDefaults())
	if err != nil {
		panic(err)
	}
	return s
}

// endpoint is a plain TCP server, so that it can misbehave in ways that an HTTP server cannot.
type endpoint struct {
	net.Listener
	connections atomic.Int32
	requests    atomic.Int32
}

// serve starts an endpoint that calls answer for each request on each connection, until answer returns false.
func serve(t testing.TB, answer func(conn net.Conn, request *http.Request) bool) *endpoint {
	t.Helper()
	e := &endpoint{Listener: fixture.Listen(t)}
	fixture.Serve(e, func(conn net.Conn) {
		e.connections.Add(1)
		e.converse(conn, answer)
	})
	return e
}

func (e *endpoint) converse(conn net.Conn, answer func(net.Conn, *http.Request) bool) {
	reader := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		e.requests.Add(1)
		if _, err := io.Copy(io.Discard, request.Body); err != nil || !answer(conn, request) {
			return
		}
	}
}

// respondWith returns a handler that responds to each request with the same bytes.
func respondWith(answer string) func(net.Conn, *http.Request) bool {
	return func(conn net.Conn, _ *http.Request) bool {
		_, err := io.WriteString(conn, answer)
		return err == nil
	}
}

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func hangUp(net.Conn, *http.Request) bool { return false }

// of returns a backend whose endpoints are used in turn. One failure ejects an endpoint as long as there are others.
func of(endpoints ...*endpoint) *balancer.Backend {
	b := balancer.New("shop/web/80")
	b.SetPolicy(&ir.LoadBalancing{EjectAfter: 1})
	var list []ir.Endpoint
	for _, e := range endpoints {
		list = append(list, ir.Endpoint{Address: e.Addr().String()})
	}
	b.SetEndpoints(list)
	for len(list) > 0 {
		// The first endpoint is the next one now.
		if c, _ := b.Pick(nil, nil); c.Endpoint.Address() == list[len(list)-1].Address {
			break
		}
	}
	return b
}

// failing reports whether an endpoint is ejected.
func failing(b *balancer.Backend, e *endpoint) bool {
	for range 2 * len(b.Endpoints()) {
		if c, _ := b.Pick(nil, nil); c.Endpoint.Address() == e.Addr().String() {
			return false
		}
	}
	return true
}

// front handles requests as a server does.
type front struct {
	pool     *proxy.Pool
	settings *proxy.Settings
	backend  *balancer.Backend
	secured  *proxy.Secured
	global   ir.Global
	// directives are the directives of a program, or nil.
	directives *exchange.Directives
	errs       chan error
	// tried is called with the attempts of each request, unless it is nil.
	tried func([]exchange.Attempt)
}

func inFront(t testing.TB, s *proxy.Settings, b *balancer.Backend) *front {
	return &front{pool: pool(t), settings: s, backend: b, errs: make(chan error, 100)}
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 {
		// Without this, net/http would read the rest of the body before it writes a response.
		_ = http.NewResponseController(w).EnableFullDuplex()
	}
	var m message.Request
	m.FromHTTP(r)
	writer := message.NewHTTPWriter(w, r)
	f.answer(&m, writer, r.Context().Value(http.ServerContextKey) != nil)
	if writer.Aborted() && r.Context().Value(http.ServerContextKey) != nil {
		panic(http.ErrAbortHandler)
	}
}

// answer forwards a request as a server does, and sends its error to errs. If says is true, it also responds to an
// error with its status.
func (f *front) answer(r *message.Request, w message.Writer, says bool) {
	x := &exchange.Exchange{
		Request: r, Route: &exchange.Route{Path: "/", Origin: "Ingress/shop/web"}, Backend: f.backend,
		Clients: realip.New(ir.Clients{}), Global: &f.global, Writer: w,
	}
	if f.directives != nil {
		x.UseDirectives(f.directives)
	}
	err := f.pool.Forward(x, f.settings, f.secured)
	x.Conclude(err)
	if f.tried != nil {
		f.tried(x.Attempts())
	}
	f.errs <- err
	if err != nil && says && !w.Started() {
		status := exchange.StatusOf(err)
		_ = x.Respond(status, fmt.Sprintf("error %d", status))
	}
}

// onFronts runs a test with net/http as the server, and with our own server.
func onFronts(t *testing.T, test func(t *testing.T, ours bool)) {
	t.Run("net/http", func(t *testing.T) { test(t, false) })
	t.Run("httpserver", func(t *testing.T) { test(t, true) })
}

// listen starts a server and returns a client for it.
func (f *front) listen(t testing.TB, ours bool) (*httptest.Server, *http.Client) {
	t.Helper()
	if !ours {
		server := httptest.NewServer(f)
		t.Cleanup(server.Close)
		return server, server.Client()
	}
	listener := fixture.Listen(t)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			remote, local := netip.MustParseAddrPort(conn.RemoteAddr().String()),
				netip.MustParseAddrPort(conn.LocalAddr().String())
			go httpserver.New(conn, message.NewConn(remote, local, nil), host{f: f}).Serve()
		}
	}()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &httptest.Server{URL: "http://" + listener.Addr().String(),
		Listener: listener}, &http.Client{Transport: transport}
}

// host passes the requests of a connection to a front.
type host struct {
	httpserver.Host
	f *front
}

func (h host) Handle(w message.Writer, r *message.Request) { h.f.answer(r, w, true) }

func (host) Limits() *limits.Limits {
	return &limits.Limits{Head: patience, Body: patience, Send: patience, Idle: patience, HeadBytes: 32 << 10}
}

// loopback returns a guard that allows connections to this machine.
func loopback() *reach.Guard {
	guard := reach.NewGuard()
	guard.Configure(reach.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"),
		netip.MustParsePrefix("::1/128")}})
	return guard
}

func pool(t testing.TB) *proxy.Pool {
	p := proxy.NewPool(loopback())
	t.Cleanup(p.Close)
	return p
}

func request(t *testing.T, method, body string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), method, "http://shop.example/a?b=c", strings.NewReader(body))
	r.RequestURI = ""
	return r
}

// outcome returns the result for the client: the status of the error or of the response.
func outcome(w *httptest.ResponseRecorder, err error) string {
	var failed *exchange.Failure
	switch {
	case errors.As(err, &failed):
		return fmt.Sprintf("error %d", failed.Status)
	case err != nil:
		return err.Error()
	}
	return fmt.Sprintf("%d %s", w.Code, w.Body)
}

func forward(p *proxy.Pool, r *http.Request, b *balancer.Backend) string {
	return outcomeOf(p, r, settings(ir.RetryOnError, ir.RetryOnTimeout), b)
}

func outcomeOf(p *proxy.Pool, r *http.Request, s *proxy.Settings, b *balancer.Backend) string {
	w := httptest.NewRecorder()
	return outcome(w, forwardOnce(p, w, r, s, b))
}

// forwardOnce forwards a request as a server does.
func forwardOnce(p *proxy.Pool, w http.ResponseWriter, r *http.Request, s *proxy.Settings, b *balancer.Backend) error {
	f := &front{pool: p, settings: s, backend: b, errs: make(chan error, 1)}
	f.ServeHTTP(w, r)
	return <-f.errs
}

// refusing returns an endpoint at an address on which nothing listens.
func refusing(t *testing.T) *endpoint {
	e := serve(t, hangUp)
	e.Close()
	return e
}

// while calls ask in another goroutine, unless ctx has ended already, and returns a channel for the result.
func while(ctx context.Context, ask func() string) <-chan string {
	got := make(chan string, 1)
	go func() {
		defer close(got)
		if ctx.Err() == nil {
			got <- ask()
		}
	}()
	return got
}
