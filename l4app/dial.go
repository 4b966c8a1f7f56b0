package l4app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

const (
	// idleTimeout is ingress-nginx's default of proxy-stream-timeout.
	idleTimeout = 600 * time.Second
	// connectTimeout is the time that one endpoint has to accept a connection: ingress-nginx's proxy-connect-timeout
	// for HTTP. ingress-nginx has no such setting for streams and uses nginx's default of 60 seconds. Most clients do
	// not wait that long for three endpoints.
	connectTimeout = 5 * time.Second
	// tries is the maximum number of endpoints to try: ingress-nginx's default of proxy-stream-next-upstream-tries.
	tries = 3
	// triesTimeout is the time after which no further endpoint is tried: ingress-nginx's default of
	// proxy-stream-next-upstream-timeout.
	triesTimeout = 600 * time.Second
)

// attempt is the search for an endpoint that accepts the connection of one client.
type attempt struct {
	handler *Handler
	to      *balancer.Backend
	client  balancer.Address
	// greeting is sent first on each connection to an endpoint: a PROXY protocol header, or nothing.
	greeting []byte
}

// dial connects to an endpoint of the backend, and tries other endpoints after a failure. The returned choice has
// begun; the caller must call its End method.
func (a *attempt) dial(ctx context.Context) (net.Conn, balancer.Choice, error) {
	err, policy := balancer.ErrNoEndpoint, &a.handler.Policy
	if a.handler.secured != nil {
		// An invalid Secret is not the fault of an endpoint, so no endpoint is tried.
		if err := a.handler.secured.now().err; err != nil {
			return nil, balancer.Choice{}, err
		}
	}
	begin, limit := time.Now(), cmp.Or(policy.TriesTimeout, triesTimeout)
	var tried []*balancer.Endpoint
	for range cmp.Or(policy.Tries, tries) {
		choice, ok := a.to.Pick(a.client, tried)
		if !ok || slices.Contains(tried, choice.Endpoint) {
			break
		}
		var conn net.Conn
		if conn, err = a.try(ctx, choice); err == nil {
			return conn, choice, nil
		}
		err = fmt.Errorf("endpoint %s: %w", choice.Endpoint.Address(), err)
		if ctx.Err() != nil || time.Since(begin) >= limit {
			break
		}
		tried = append(tried, choice.Endpoint)
	}
	return nil, balancer.Choice{}, err
}

// try connects to one endpoint. The balancer gets the connect time as the endpoint's latency, because the client
// decides how long a connection lasts.
func (a *attempt) try(ctx context.Context, choice balancer.Choice) (net.Conn, error) {
	begin := time.Now()
	choice.Begin()
	conn, err := a.connect(ctx, choice.Endpoint.Address())
	var closed *reach.Refusal
	if err == nil || ctx.Err() == nil && !errors.As(err, &closed) {
		choice.Observe(time.Since(begin), err != nil)
	}
	if err != nil {
		choice.End()
	}
	return conn, err
}

// connect connects to an endpoint, sends the greeting and performs the TLS handshake, so that the client's bytes can
// follow.
func (a *attempt) connect(ctx context.Context, address string) (net.Conn, error) {
	deadline := time.Now().Add(cmp.Or(a.handler.Policy.ConnectTimeout, connectTimeout))
	conn, err := a.open(ctx, address, deadline)
	if err != nil {
		return nil, err
	}
	// Add the address immediately: the connection may lead back to one of our own ports.
	local := addressOf(conn.LocalAddr())
	a.handler.outgoing.Add(local)
	ready, err := a.greet(ctx, conn, deadline)
	if err != nil {
		a.handler.outgoing.Remove(local)
		conn.Close()
		return nil, err
	}
	return ready, nil
}

// greet sends the greeting to an endpoint, and then performs the TLS handshake if the endpoint uses TLS.
func (a *attempt) greet(ctx context.Context, conn net.Conn, deadline time.Time) (net.Conn, error) {
	if len(a.greeting) > 0 {
		if _, err := conn.Write(a.greeting); err != nil {
			return nil, fmt.Errorf("sending the PROXY protocol header: %w", err)
		}
	}
	if a.handler.secured == nil {
		return conn, nil
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	return a.handler.secured.speak(ctx, conn)
}

// open connects to an endpoint if the guard allows its address. TCP keep-alive is off, because the watch ends the
// connections of endpoints that have disappeared.
func (a *attempt) open(ctx context.Context, address string, deadline time.Time) (net.Conn, error) {
	return a.handler.guard.Dial(ctx, net.Dialer{Deadline: deadline, KeepAlive: -1}, a.to.ID(), address)
}
