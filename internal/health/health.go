// Package health asks endpoints again and again whether they are well, where an Ingress wants that. An endpoint that does not
// answer as it should is passed over until it does.
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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/reach"
	"github.com/k8singress/k8singress/internal/trust"
)

// Backend is what is asked: its endpoints at this moment, and who wants to know.
type Backend interface {
	Endpoints() []ir.Endpoint
	SetHealthy(address string, healthy bool)
}

// Checker asks the endpoints of backends. Its methods may be called from any goroutine.
type Checker struct {
	// client asks over HTTP, h2c and grpcs the health service of gRPC, with and without TLS.
	client, h2c, grpcs *http.Client
	// guard decides which addresses are dialled.
	guard *reach.Guard
	// authority finds the contents of a Secret.
	authority func(secret ir.Name) *trust.Authority

	mu      sync.Mutex
	running map[string]*round
	all     panics.Group
	// asking has the slots of each namespace, for as long as there is a round for it.
	asking map[string]*slots
}

// slots are the questions of one namespace that are under way at a time, and rounds how many rounds have them.
type slots struct {
	free   chan struct{}
	rounds int
}

// round is one backend that is asked.
type round struct {
	check  ir.HealthCheck
	cancel context.CancelFunc
	// slots are those of its namespace.
	slots chan struct{}
	// next says that another round goes on from what this one knows. It is set before cancel.
	next atomic.Bool
	// known is for the goroutine of the round, until done is closed.
	known map[string]*streak
	done  chan struct{}
	state atomic.Pointer[State]
}

// New returns a checker that asks no endpoint yet, and dials what the guard lets it. authority says where the contents of Secrets are found,
// for checks that verify endpoints or show them a certificate.
func New(guard *reach.Guard, authority func(secret ir.Name) *trust.Authority) *Checker {
	c := &Checker{guard: guard, authority: authority, running: map[string]*round{}, asking: map[string]*slots{}}
	c.client = c.speaking((*http.Protocols).SetHTTP1, careless())
	c.h2c = c.speaking((*http.Protocols).SetUnencryptedHTTP2, nil)
	c.grpcs = c.speaking((*http.Protocols).SetHTTP2, careless())
	return c
}

// backendKey is for the ID of the backend that is asked, in the context of a question.
type backendKey struct{}

// speaking returns a client that speaks one protocol.
func (c *Checker) speaking(speaks func(*http.Protocols, bool), secure *tls.Config) *http.Client {
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			backend, _ := ctx.Value(backendKey{}).(string)
			return c.guard.Dial(ctx, net.Dialer{}, backend, address)
		},
		// A connection that is kept would say that the endpoint was well once.
		DisableKeepAlives: true, DisableCompression: true, TLSClientConfig: secure, Protocols: new(http.Protocols),
	}
	speaks(t.Protocols, true)
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Set says how the endpoints of a backend are asked; nil is not any more, and so is a check without an interval. The id tells
// backends apart. A check that is as it was goes on, and one that is another goes on from what is known: who failed before
// has to answer well first.
func (c *Checker) Set(id string, b Backend, check *ir.HealthCheck) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.running[id]
	if old != nil && check != nil && old.check == *check {
		return
	}
	if old != nil {
		old.next.Store(check != nil)
		old.cancel()
		delete(c.running, id)
	}
	if check == nil || check.Interval <= 0 {
		return
	}
	// A check belongs to no request: it ends with Set or Close.
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), backendKey{}, id)) //nolint:forbidigo // see above
	r := &round{check: *check, cancel: cancel, known: map[string]*streak{}, done: make(chan struct{})}
	c.running[id] = r
	namespace, _, _ := strings.Cut(id, "/")
	r.slots = c.hold(namespace)
	c.all.Go("health/backend", func() {
		defer close(r.done)
		defer c.release(namespace)
		r.inherit(old)
		c.follow(ctx, b, r)
	})
}

// hold returns the slots of a namespace, until release. The mutex is held.
func (c *Checker) hold(namespace string) chan struct{} {
	s := c.asking[namespace]
	if s == nil {
		s = &slots{free: make(chan struct{}, mostOfNamespace)}
		c.asking[namespace] = s
	}
	s.rounds++
	return s.free
}

func (c *Checker) release(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.asking[namespace]
	if s.rounds--; s.rounds == 0 {
		delete(c.asking, namespace)
	}
}

// inherit waits for the round before, which has been told to end, and takes what it knows.
func (r *round) inherit(old *round) {
	if old != nil {
		<-old.done
		r.known = old.known
	}
}

// Close ends all checks, and waits for those under way.
func (c *Checker) Close() {
	c.mu.Lock()
	for id, r := range c.running {
		r.cancel()
		delete(c.running, id)
	}
	c.mu.Unlock()
	c.all.Wait()
}

// follow checks all endpoints of a backend once in each interval. An endpoint that is no longer checked counts as healthy. Each
// backend has a goroutine and a timer of its own rather than a place in one queue for all, and only those of one namespace wait for each
// other: a bound on the checks of all would let the time limits of one tenant's dead endpoints delay the checks of another tenant.
func (c *Checker) follow(ctx context.Context, b Backend, r *round) {
	// The replicas of the controller should not all ask at once.
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
			if c.ask(ctx, b, r); ctx.Err() == nil {
				r.publish()
			}
			timer.Reset(r.check.Interval)
		}
	}
}

// most is how many endpoints of one backend are asked at the same time, mostOfNamespace how many of all backends of a namespace: each
// question is a connection.
const most, mostOfNamespace = 16, 64

// ask asks each endpoint once.
func (c *Checker) ask(ctx context.Context, b Backend, r *round) {
	list, check, known := b.Endpoints(), &r.check, r.known
	there := make(map[string]bool, len(list))
	var asking panics.Group
	slots := make(chan struct{}, most)
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
			asking.Wait()
			return
		}
		asking.Go("health/probe", func() {
			defer func() { <-slots; <-r.slots }()
			err := c.probe(ctx, e.Address, check)
			if ctx.Err() != nil {
				return
			}
			// One that is ill is named each time: the backend forgets those that were away for a while.
			if changed := s.add(err, check); changed || !s.healthy {
				b.SetHealthy(e.Address, s.healthy)
			}
		})
	}
	asking.Wait()
	for address := range known {
		if !there[address] {
			delete(known, address)
			// It may come back, and is asked anew then.
			b.SetHealthy(address, true)
		}
	}
}

// streak is how an endpoint has answered lately.
type streak struct {
	healthy bool
	// against counts the answers in a row that say otherwise.
	against int
	// reason is how it failed last.
	reason string
}

// add notes an answer. It returns true when the endpoint changes by it.
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

// longestAnswer is how much of an answer is read: a health check says little.
const longestAnswer = 64 << 10

const userAgent = "k8singress-health-check"

// probe asks one endpoint. It returns why that one is not well.
func (c *Checker) probe(ctx context.Context, address string, check *ir.HealthCheck) error {
	ctx, cancel := context.WithTimeout(ctx, check.Timeout)
	defer cancel()
	ask := c.askHTTP
	if check.GRPC {
		ask = c.askGRPC
	}
	err := ask(ctx, address, check)
	var in *url.Error
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("there is no answer within %v", check.Timeout)
	case errors.As(err, &in):
		// The rest of it is the address.
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

func (c *Checker) askHTTP(ctx context.Context, address string, check *ir.HealthCheck) error {
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
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, longestAnswer)); err != nil {
		return err
	}
	well := response.StatusCode >= http.StatusOK && response.StatusCode < http.StatusBadRequest
	if check.Status != 0 {
		well = response.StatusCode == check.Status
	}
	if !well {
		return fmt.Errorf("the answer has the status %d", response.StatusCode)
	}
	return nil
}

// State is what the last round of checks found out about a backend.
type State struct {
	// Endpoints are all that were asked, Unhealthy those of them that are passed over.
	Endpoints, Unhealthy int
	// Address is one that is unhealthy, and Reason is how it failed last.
	Address, Reason string
}

// State returns that of a backend, or false if nobody checks it, or its first round has not ended.
func (c *Checker) State(id string) (State, bool) {
	c.mu.Lock()
	r := c.running[id]
	c.mu.Unlock()
	if r == nil || r.state.Load() == nil {
		return State{}, false
	}
	return *r.state.Load(), true
}

// States yields those of all backends.
func (c *Checker) States() iter.Seq2[string, State] {
	return func(yield func(string, State) bool) {
		c.mu.Lock()
		ids := make([]string, 0, len(c.running))
		for id := range c.running {
			ids = append(ids, id)
		}
		c.mu.Unlock()
		for _, id := range ids {
			if s, ok := c.State(id); ok && !yield(id, s) {
				return
			}
		}
	}
}

// publish makes what a round knows its state.
func (r *round) publish() {
	s := &State{Endpoints: len(r.known)}
	for address, k := range r.known {
		if k.healthy {
			continue
		}
		// Of several, always the same one.
		if s.Unhealthy++; s.Address == "" || address < s.Address {
			s.Address, s.Reason = address, k.reason
		}
	}
	r.state.Store(s)
}
