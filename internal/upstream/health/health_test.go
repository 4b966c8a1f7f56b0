package health_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/health"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

const patience = fixture.Patience

// backend is a list of endpoints that records the results.
type backend struct {
	list []ir.Endpoint
	said chan string

	mu  sync.Mutex
	ill map[string]bool
}

func (b *backend) Endpoints() []ir.Endpoint { return b.list }

func (b *backend) SetHealthy(address string, healthy bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ill[address] == !healthy && !healthy {
		// The result is reported repeatedly.
		return
	}
	if b.ill == nil {
		b.ill = map[string]bool{}
	}
	b.ill[address] = !healthy
	word := address + " is ill"
	if healthy {
		word = address + " is well"
	}
	b.said <- word
}

func (b *backend) await(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-b.said:
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	case <-time.After(patience):
		t.Errorf("nothing is said, want %s", want)
	}
}

func check() *ir.HealthCheck {
	return &ir.HealthCheck{Path: "/health", Interval: 10 * time.Millisecond, Timeout: time.Second, Healthy: 2,
		Unhealthy: 3, Host: "app.example"}
}

func TestEndpointBecomesUnhealthyAndRecovers(t *testing.T) {
	var ill atomic.Bool
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" || r.Host != "app.example" {
			t.Errorf("asked for %s of %s", r.URL, r.Host)
		}
		if asked.Add(1); ill.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	address := server.Listener.Addr().String()
	b := &backend{list: []ir.Endpoint{{Address: address}}, said: make(chan string, 10)}
	c := health.New(loopback(), nil)
	defer c.Close()
	c.Set("b", b, check())
	ill.Store(true)
	b.await(t, address+" is ill")
	ill.Store(false)
	b.await(t, address+" is well")
	if asked.Load() < 5 {
		t.Errorf("asked %d times, and three bad and two good answers were needed", asked.Load())
	}
}

func TestMissingEndpoint(t *testing.T) {
	address := fixture.Address(t)
	b := &backend{list: []ir.Endpoint{{Address: address}}, said: make(chan string, 10)}
	c := health.New(loopback(), nil)
	c.Set("b", b, check())
	b.await(t, address+" is ill")
	// An endpoint whose check has been removed must not be skipped forever.
	c.Set("b", b, nil)
	b.await(t, address+" is well")
	c.Close()
}

// TestAnotherCheck checks that a changed check starts with the known results: an unhealthy endpoint does not get
// requests because of the change.
func TestAnotherCheck(t *testing.T) {
	var well atomic.Bool
	asked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !well.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
		if r.URL.Path == "/other" {
			asked <- struct{}{}
		}
	}))
	defer server.Close()
	address := server.Listener.Addr().String()
	b := &backend{list: []ir.Endpoint{{Address: address}}, said: make(chan string, 10)}
	c := health.New(loopback(), nil)
	defer c.Close()
	c.Set("b", b, check())
	b.await(t, address+" is ill")
	other := check()
	other.Path = "/other"
	c.Set("b", b, other)
	for range 2 * other.Unhealthy {
		fixture.Receive(t, "a health check", asked)
	}
	if n := len(b.said); n > 0 {
		t.Errorf("it is ill as before, and yet: %s", <-b.said)
	}
	well.Store(true)
	for range other.Healthy + 1 {
		fixture.Receive(t, "a health check", asked)
	}
	b.await(t, address+" is well")
	go func() {
		for range asked {
		}
	}()
	c.Close()
	server.Close()
	close(asked)
}

// TestPath checks that the path is sent unchanged, including query and escapes.
func TestPath(t *testing.T) {
	asked := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.RequestURI:
		default:
		}
	}))
	defer server.Close()
	b := &backend{list: []ir.Endpoint{{Address: server.Listener.Addr().String()}}, said: make(chan string, 10)}
	for _, path := range []string{"/healthz?full=1&a=%20", "/a%2Fb", "//double", "/%7Benv.HOME%7D"} {
		c := health.New(loopback(), nil)
		whole := check()
		whole.Path = path
		c.Set("b", b, whole)
		select {
		case got := <-asked:
			if got != path {
				t.Errorf("asked for %s, want %s", got, path)
			}
		case <-time.After(patience):
			t.Errorf("nobody asks for %s", path)
		}
		c.Close()
		for range len(asked) {
			fixture.Receive(t, "a health check", asked)
		}
		for range len(b.said) {
			<-b.said
		}
	}
}

func TestStatus(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) }))
	defer server.Close()
	b := &backend{list: []ir.Endpoint{{Address: server.Listener.Addr().String()}}, said: make(chan string, 10)}
	c := health.New(loopback(), nil)
	defer c.Close()
	exact := check()
	exact.Status = http.StatusOK
	c.Set("b", b, exact)
	b.await(t, server.Listener.Addr().String()+" is ill")
}

// TestReturningEndpoint checks that an endpoint that was unhealthy when it was removed gets requests again when
// it returns and is healthy.
func TestReturningEndpoint(t *testing.T) {
	var ill atomic.Bool
	var asked atomic.Int32
	answer := func(w http.ResponseWriter, _ *http.Request) {
		if ill.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	patient := httptest.NewServer(http.HandlerFunc(answer))
	defer patient.Close()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	address := patient.Listener.Addr().String()
	both := []ir.Endpoint{{Address: address}, {Address: other.Listener.Addr().String()}}
	b := balancer.New("b")
	b.SetEndpoints(both)
	gets := func() bool {
		for range len(both) {
			if choice, ok := b.Pick(nil, nil); ok && choice.Endpoint.Address() == address {
				return true
			}
		}
		return false
	}
	c := health.New(loopback(), nil)
	defer c.Close()
	ill.Store(true)
	c.Set("b", b, check())
	await(t, "the ill endpoint gets requests", func() bool { return !gets() })
	b.SetEndpoints(both[1:])
	rounds := asked.Load()
	await(t, "nobody is asked", func() bool { return asked.Load() >= rounds+2 })
	ill.Store(false)
	b.SetEndpoints(both)
	await(t, "an endpoint that is well gets no requests", gets)
}

func await(t *testing.T, otherwise string, holds func() bool) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-again.C {
		if time.Now().After(deadline) {
			t.Fatal(otherwise)
		}
	}
}

func TestThePathMayHaveAQuery(t *testing.T) {
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.RequestURI:
		default:
		}
	}))
	defer server.Close()
	b := &backend{list: []ir.Endpoint{{Address: server.Listener.Addr().String()}}, said: make(chan string, 10)}
	c := health.New(loopback(), nil)
	defer c.Close()
	query := check()
	query.Path = "/a%20b?deep=1"
	c.Set("b", b, query)
	select {
	case got := <-asked:
		if got != query.Path {
			t.Errorf("asked for %s, want %s", got, query.Path)
		}
	case <-time.After(patience):
		t.Error("nobody is asked")
	}
}

// TestACheckWithoutTimes checks that a document without an interval and a timeout does not end the process.
func TestACheckWithoutTimes(*testing.T) {
	c := health.New(loopback(), nil)
	c.Set("b", &backend{said: make(chan string, 10)}, &ir.HealthCheck{Path: "/"})
	c.Close()
}

// TestForgottenEndpoint checks that an unhealthy endpoint is reported in each round. A backend forgets
// endpoints that were removed for more than a minute, and an interval may be longer.
func TestForgottenEndpoint(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer server.Close()
	address := server.Listener.Addr().String()
	b := &backend{list: []ir.Endpoint{{Address: address}}, said: make(chan string, 10)}
	c := health.New(loopback(), nil)
	defer c.Close()
	c.Set("b", b, check())
	b.await(t, address+" is ill")
	state(t, c, health.State{Endpoints: 1, Unhealthy: 1, Address: address, Reason: "the response has status 418"})
	b.mu.Lock()
	b.ill = nil
	b.mu.Unlock()
	b.await(t, address+" is ill")
}

// TestAnEndpointInside checks that health checks connect only to allowed addresses, with every protocol.
// TestEndpointBecomesUnhealthyAndRecovers uses the same server with another guard.
func TestAnEndpointInside(t *testing.T) {
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1", "0.0.0.0"} {
		for _, speaks := range []ir.HealthCheck{{}, {TLS: true}, {GRPC: true}, {GRPC: true, TLS: true}} {
			address, how := net.JoinHostPort(host, port), *check()
			how.TLS, how.GRPC = speaks.TLS, speaks.GRPC
			b := &backend{list: []ir.Endpoint{{Address: address}}, said: make(chan string, 10)}
			c := health.New(reach.NewGuard(), nil)
			c.Set("shop/web/80", b, &how)
			b.await(t, address+" is ill")
			c.Close()
		}
	}
	if n := connections.Load(); n > 0 {
		t.Errorf("there are %d connections to it", n)
	}
}

// loopback returns a guard that allows connections to this machine.
func loopback() *reach.Guard {
	guard := reach.NewGuard()
	guard.Configure(reach.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"),
		netip.MustParsePrefix("::1/128")}})
	return guard
}

// TestTenant16HealthChecks checks that the checks of one namespace, with any number of backends whose endpoints are
// silent, use a limited number of connections and do not delay the checks of another namespace.
func TestTenant16HealthChecks(t *testing.T) {
	const most, backends = 64, 100
	var open atomic.Int64
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		open.Add(1)
		<-end
	}))
	defer server.Close()
	defer close(end)
	c := health.New(loopback(), nil)
	defer c.Close()
	hostile := check()
	hostile.Timeout = time.Hour
	for i := range backends {
		silent := &backend{list: []ir.Endpoint{{Address: server.Listener.Addr().String()}}, said: make(chan string, 1)}
		c.Set(fmt.Sprintf("b/silent-%d/80", i), silent, hostile)
	}
	fixture.Eventually(t, "as many questions as there may be", func() error {
		if n := open.Load(); n < most {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	// Each round starts within an interval. After three rounds of this check, all other checks have started.
	dead := &backend{list: []ir.Endpoint{{Address: "127.0.0.1:1"}}, said: make(chan string, 10)}
	c.Set("a/web/80", dead, check())
	dead.await(t, "127.0.0.1:1 is ill")
	if n := open.Load(); n > most {
		t.Errorf("there are %d connections", n)
	}
}
