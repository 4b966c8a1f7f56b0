package l4app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/reach"
)

const (
	// idleTimeout is ingress-nginx's proxy-stream-timeout.
	idleTimeout = 600 * time.Second
	// connectTimeout is how long one endpoint has to accept: ingress-nginx's proxy-connect-timeout, which is for HTTP. It has
	// none for streams, where nginx's own 60 seconds count, which is longer than most clients wait for three endpoints.
	connectTimeout = 5 * time.Second
	// tries is how many endpoints are asked: ingress-nginx's proxy-stream-next-upstream-tries.
	tries = 3
	// triesTimeout is for how long another one is asked: ingress-nginx's proxy-stream-next-upstream-timeout.
	triesTimeout = 600 * time.Second
)

// attempt is the search for an endpoint that takes a client's connection.
type attempt struct {
	handler *Handler
	to      *balancer.Backend
	client  balancer.Address
	// greeting is what each endpoint hears first.
	greeting []byte
}

// dial connects to an endpoint. The choice that it returns is under way.
func (a *attempt) dial(ctx context.Context) (net.Conn, balancer.Choice, error) {
	err, policy := balancer.ErrNoEndpoint, &a.handler.Policy
	if a.handler.secured != nil {
		// That is no fault of an endpoint.
		if err := a.handler.secured.now().err; err != nil {
			return nil, balancer.Choice{}, err
		}
	}
	begin, most := time.Now(), cmp.Or(policy.TriesTimeout, triesTimeout)
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
		if ctx.Err() != nil || time.Since(begin) >= most {
			break
		}
		tried = append(tried, choice.Endpoint)
	}
	return nil, balancer.Choice{}, err
}

// try connects to one endpoint. What counts as its latency is the time until it accepts: a connection lasts as long as
// the client likes.
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

// connect has an endpoint ready for what the client says.
func (a *attempt) connect(ctx context.Context, address string) (net.Conn, error) {
	deadline := time.Now().Add(cmp.Or(a.handler.Policy.ConnectTimeout, connectTimeout))
	conn, err := a.open(ctx, address, deadline)
	if err != nil {
		return nil, err
	}
	// At once: it may lead back to a port of ours.
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

// greet says what an endpoint hears first, and begins TLS where it is spoken.
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

// open connects, where the endpoint may be dialled. One that is gone without a word is noticed where endpoints are, and needs no probes of
// its own.
func (a *attempt) open(ctx context.Context, address string, deadline time.Time) (net.Conn, error) {
	return a.handler.guard.Dial(ctx, net.Dialer{Deadline: deadline, KeepAlive: -1}, a.to.ID(), address)
}
