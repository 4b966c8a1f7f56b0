// Package health runs active health checks of endpoints, as configured by Ingresses. An unhealthy endpoint gets no
// requests until it is healthy again.
package health

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/tls/trust"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

// Backend is a backend whose endpoints are checked. Endpoints returns its current endpoints. SetHealthy is called with
// the results.
type Backend interface {
	Endpoints() []ir.Endpoint
	SetHealthy(address string, healthy bool)
}

// Checker runs the health checks of all backends. It is safe for concurrent use.
type Checker struct {
	// client is used for HTTP checks, h2c for gRPC checks without TLS, and grpcs for gRPC checks with TLS.
	client, h2c, grpcs *http.Client
	// guard decides to which addresses connections are allowed.
	guard *reach.Guard
	// authority returns the CA certificates and the client certificate that a Secret contains.
	authority func(secret ir.Name) *trust.Authority

	mu      sync.Mutex
	running shrinking.Map[string, *round]
	all     panics.Group
	// byNamespace maps each namespace with health checks to the semaphore that limits its concurrent probes.
	byNamespace map[string]*slots
}

// slots limits the concurrent probes of one namespace. free is the semaphore. rounds is the number of health checks
// that use it.
type slots struct {
	free   chan struct{}
	rounds int
}

// round is the running health check of one backend.
type round struct {
	check  ir.HealthCheck
	cancel context.CancelFunc
	// slots is the semaphore of the backend's namespace.
	slots chan struct{}
	// next is set if the settings of the health check have changed, so that a new health check replaces this one and
	// takes over its results. It is set before cancel is called.
	next atomic.Bool
	// known maps the address of each endpoint to the latest results of its probes. Only the goroutine of the health
	// check may use it until done is closed.
	known map[string]*streak
	done  chan struct{}
	state atomic.Pointer[State]
}

// New returns a Checker without health checks. The Checker only connects to addresses that guard allows. authority must
// return the CA certificates and the client certificate that a Secret contains. It is called for checks that verify the
// certificates of endpoints or send a client certificate.
func New(guard *reach.Guard, authority func(secret ir.Name) *trust.Authority) *Checker {
	c := &Checker{guard: guard, authority: authority, byNamespace: map[string]*slots{}}
	c.client = c.speaking((*http.Protocols).SetHTTP1, careless())
	c.h2c = c.speaking((*http.Protocols).SetUnencryptedHTTP2, nil)
	c.grpcs = c.speaking((*http.Protocols).SetHTTP2, careless())
	return c
}

// backendKey is the context key for the ID of the backend that is being checked.
type backendKey struct{}

// speaking returns an HTTP client with a single protocol, for example HTTP/2. The function speaks enables this
// protocol.
func (c *Checker) speaking(speaks func(*http.Protocols, bool), secure *tls.Config) *http.Client {
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			backend, _ := ctx.Value(backendKey{}).(string)
			return c.guard.Dial(ctx, net.Dialer{}, backend, address)
		},
		// Open a new connection for each probe: an existing connection would only show that the endpoint was healthy
		// earlier.
		DisableKeepAlives: true, DisableCompression: true, TLSClientConfig: secure, Protocols: new(http.Protocols),
	}
	speaks(t.Protocols, true)
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Set sets the health check of the backend with the given ID. If check is nil or has no interval, the running health
// check is stopped. If check has not changed, the running health check continues. If it has changed, a new health check
// takes over the results of the old one, so an unhealthy endpoint stays unhealthy until it has passed enough probes.
func (c *Checker) Set(id string, b Backend, check *ir.HealthCheck) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.running.Get(id)
	if old != nil && check != nil && old.check == *check {
		return
	}
	if old != nil {
		old.next.Store(check != nil)
		old.cancel()
		c.running.Delete(id)
	}
	if check == nil || check.Interval <= 0 {
		return
	}
	// Do not use the context of a caller: a health check does not belong to a request, and runs until Set or Close ends
	// it.
	background := context.Background() //nolint:forbidigo // see above
	ctx, cancel := context.WithCancel(context.WithValue(background, backendKey{}, id))
	r := &round{check: *check, cancel: cancel, known: map[string]*streak{}, done: make(chan struct{})}
	c.running.Set(id, r)
	namespace, _, _ := strings.Cut(id, "/")
	r.slots = c.hold(namespace)
	c.all.Go("health/backend", func() {
		defer close(r.done)
		defer c.release(namespace)
		r.inherit(old)
		c.follow(ctx, b, r)
	})
}

// hold returns the semaphore of a namespace, and keeps it in c.byNamespace until release is called. The caller must
// hold c.mu.
func (c *Checker) hold(namespace string) chan struct{} {
	s := c.byNamespace[namespace]
	if s == nil {
		s = &slots{free: make(chan struct{}, maxPerNamespace)}
		c.byNamespace[namespace] = s
	}
	s.rounds++
	return s.free
}

func (c *Checker) release(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.byNamespace[namespace]
	if s.rounds--; s.rounds == 0 {
		delete(c.byNamespace, namespace)
	}
}

// inherit waits until the previous health check of the same backend, which was cancelled, has ended. It then takes over
// the results of the previous health check.
func (r *round) inherit(old *round) {
	if old != nil {
		<-old.done
		r.known = old.known
	}
}

// Close stops all health checks, and waits until running probes have ended.
func (c *Checker) Close() {
	c.mu.Lock()
	for id, r := range c.running.All() {
		r.cancel()
		c.running.Delete(id)
	}
	c.mu.Unlock()
	c.all.Wait()
}

// follow checks all endpoints of a backend once per interval, until ctx ends. It then marks the endpoints as healthy
// again, unless a new health check of the same backend takes over the results. Each backend has its own goroutine and
// timer, so that the timeouts of one tenant's dead endpoints do not delay the checks of other tenants.
func (c *Checker) follow(ctx context.Context, b Backend, r *round) {
	// Use a random delay, so that the replicas of the controller do not all send probes at the same time.
	timer := time.NewTimer(rand.N(min(r.check.Interval, time.Second)))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			if r.next.Load() {
				return
			}
			for address := range r.known {
				b.SetHealthy(address, true)
			}
			return
		case <-timer.C:
			if c.probeAll(ctx, b, r); ctx.Err() == nil {
				r.publish()
			}
			timer.Reset(r.check.Interval)
		}
	}
}

// maxProbes is the maximum number of concurrent probes of one backend. maxPerNamespace is the maximum number of
// concurrent probes of all backends in one namespace. Each probe uses a connection.
const maxProbes, maxPerNamespace = 16, 64

// probeAll probes each endpoint of a backend once, and tells the backend which endpoints have become healthy or
// unhealthy.
func (c *Checker) probeAll(ctx context.Context, b Backend, r *round) {
	list, check, known := b.Endpoints(), &r.check, r.known
	there := make(map[string]bool, len(list))
	var probes panics.Group
	slots := make(chan struct{}, maxProbes)
	for _, e := range list {
		if there[e.Address] {
			continue
		}
		there[e.Address] = true
		s := known[e.Address]
		if s == nil {
			s = &streak{healthy: true}
			known[e.Address] = s
		}
		slots <- struct{}{}
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			probes.Wait()
			return
		}
		probes.Go("health/probe", func() {
			defer func() { <-slots; <-r.slots }()
			err := c.probe(ctx, e.Address, check)
			if ctx.Err() != nil {
				return
			}
			// Report an unhealthy endpoint after each probe, because the backend may have removed the endpoint and
			// added it again as healthy.
			if changed := s.add(err, check); changed || !s.healthy {
				b.SetHealthy(e.Address, s.healthy)
			}
		})
	}
	probes.Wait()
	for address := range known {
		if !there[address] {
			delete(known, address)
			// The endpoint was removed, so forget its result: if the address is added again, it is checked like a new
			// endpoint.
			b.SetHealthy(address, true)
		}
	}
}

// streak holds the latest results of an endpoint's probes.
type streak struct {
	healthy bool
	// against is the number of consecutive results that contradict healthy. If there are enough of them, healthy is
	// changed.
	against int
	// reason is the error message of the last failed probe.
	reason string
}

// add records the result of a probe; failure is nil if the probe succeeded. It returns true if this changes s.healthy.
// Several consecutive results are needed for a change.
func (s *streak) add(failure error, check *ir.HealthCheck) bool {
	well := failure == nil
	if !well {
		s.reason = failure.Error()
	}
	if well == s.healthy {
		s.against = 0
		return false
	}
	s.against++
	needed := check.Unhealthy
	if well {
		needed = check.Healthy
	}
	if s.against < needed {
		return false
	}
	s.healthy, s.against = well, 0
	return true
}

// maxResponse is the maximum number of bytes to read from a response body.
const maxResponse = 64 << 10

const userAgent = "k8singress-health-check"

// probe sends one probe to an endpoint. It returns nil if the endpoint passes the check.
func (c *Checker) probe(ctx context.Context, address string, check *ir.HealthCheck) error {
	ctx, cancel := context.WithTimeout(ctx, check.Timeout)
	defer cancel()
	probe := c.probeHTTP
	if check.GRPC {
		probe = c.probeGRPC
	}
	err := probe(ctx, address, check)
	var in *url.Error
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("there was no response within %v", check.Timeout)
	case errors.As(err, &in):
		// Omit the URL from the error, because it only repeats the address.
		return in.Err
	}
	return err
}

func scheme(check *ir.HealthCheck) string {
	if check.TLS {
		return "https"
	}
	return "http"
}

func (c *Checker) probeHTTP(ctx context.Context, address string, check *ir.HealthCheck) error {
	target, err := url.ParseRequestURI(check.Path)
	if err != nil {
		return err
	}
	target.Scheme, target.Host = scheme(check), address
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return err
	}
	request.Host = check.Host
	request.Header.Set("User-Agent", userAgent)
	client, err := c.clientFor(check)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, maxResponse)); err != nil {
		return err
	}
	well := response.StatusCode >= http.StatusOK && response.StatusCode < http.StatusBadRequest
	if check.Status != 0 {
		well = response.StatusCode == check.Status
	}
	if !well {
		return fmt.Errorf("the response has status %d", response.StatusCode)
	}
	return nil
}

// State summarizes the latest results of a backend's health check.
type State struct {
	// Endpoints is the number of endpoints that were probed. Unhealthy is the number of unhealthy endpoints among them.
	Endpoints, Unhealthy int
	// Address is the address of one unhealthy endpoint, and Reason the error message of its last failed probe. They are
	// empty if all endpoints are healthy.
	Address, Reason string
}

// State returns the state of the backend with the given ID. It returns false if the backend has no health check, or if
// its endpoints have not been probed yet.
func (c *Checker) State(id string) (State, bool) {
	c.mu.Lock()
	r := c.running.Get(id)
	c.mu.Unlock()
	if r == nil || r.state.Load() == nil {
		return State{}, false
	}
	return *r.state.Load(), true
}

// States yields the ID and the state of each backend whose endpoints have been probed.
func (c *Checker) States() iter.Seq2[string, State] {
	return func(yield func(string, State) bool) {
		c.mu.Lock()
		ids := slices.Collect(c.running.Keys())
		c.mu.Unlock()
		for _, id := range ids {
			if s, ok := c.State(id); ok && !yield(id, s) {
				return
			}
		}
	}
}

// publish updates the state that the method State of Checker returns, after the endpoints were probed.
func (r *round) publish() {
	s := &State{Endpoints: len(r.known)}
	for address, k := range r.known {
		if k.healthy {
			continue
		}
		// Always report the unhealthy endpoint with the smallest address, so that the state changes only if the health
		// of endpoints changes.
		if s.Unhealthy++; s.Address == "" || address < s.Address {
			s.Address, s.Reason = address, k.reason
		}
	}
	r.state.Store(s)
}
