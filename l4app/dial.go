package l4app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/process/netconn"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

const (
	// idleTimeout is the default idle timeout, which is also ingress-nginx's default for proxy-stream-timeout.
	idleTimeout = 600 * time.Second
	// connectTimeout is the default time in which an endpoint must accept a connection. It is ingress-nginx's default
	// for HTTP (proxy-connect-timeout). For TCP ports, ingress-nginx uses nginx's default of 60 seconds, which cannot
	// be changed. This would be too long: most clients do not wait until three endpoints have timed out.
	connectTimeout = 5 * time.Second
	// tries is the default maximum number of endpoints to try for a connection, which is also ingress-nginx's default
	// for proxy-stream-next-upstream-tries.
	tries = 3
	// triesTimeout is the default time after which no further endpoint is tried, which is also ingress-nginx's default
	// for proxy-stream-next-upstream-timeout.
	triesTimeout = 600 * time.Second
)

// attempt connects one client to an endpoint of a backend: it tries one endpoint after the other until one of them
// accepts the connection.
type attempt struct {
	handler *Handler
	to      *balancer.Backend
	client  balancer.Address
	// greeting is the PROXY protocol header that is sent first on each connection to an endpoint. It is empty if no
	// header must be sent.
	greeting []byte
}

// dial connects to an endpoint of the backend. If an endpoint fails, it tries other endpoints. The endpoint of the
// returned Choice counts as in use until the caller calls the Choice's End method.
func (a *attempt) dial(ctx context.Context) (net.Conn, balancer.Choice, error) {
	err, policy := balancer.ErrNoEndpoint, &a.handler.Policy
	if a.handler.secured != nil {
		// If the Secret for TLS connections to endpoints is invalid, do not try any endpoint: no endpoint would work.
		if _, err := a.handler.secured.Current(); err != nil {
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

// a.try(ctx, choice) connects to one endpoint. It reports only the connect time to the balancer as the latency of the
// endpoint, because the client determines how long the whole connection lasts.
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

// connect connects to an endpoint. It then sends the PROXY protocol header and performs the TLS handshake, if these are
// configured. The client's bytes can be sent on the returned connection.
func (a *attempt) connect(ctx context.Context, address string) (net.Conn, error) {
	deadline := time.Now().Add(cmp.Or(a.handler.Policy.ConnectTimeout, connectTimeout))
	conn, err := a.open(ctx, address, deadline)
	if err != nil {
		return nil, err
	}
	// Store the local address of the connection in outgoing before sending anything. If the connection leads back to a
	// port of this process, the port recognizes the address and detects the loop.
	local := netconn.AddrPort(conn.LocalAddr())
	a.handler.outgoing.Add(local)
	ready, err := a.greet(ctx, conn, deadline)
	if err != nil {
		a.handler.outgoing.Remove(local)
		conn.Close()
		return nil, err
	}
	return ready, nil
}

// greet sends the PROXY protocol header to an endpoint, if a version is configured, and then performs the TLS
// handshake, if TLS is configured.
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

// open opens a TCP connection to an endpoint. It returns an error if the controller must not connect to the endpoint's
// address. TCP keep-alive is disabled: a connection to an endpoint that has disappeared is idle, and the port already
// closes idle connections.
func (a *attempt) open(ctx context.Context, address string, deadline time.Time) (net.Conn, error) {
	return a.handler.guard.Dial(ctx, net.Dialer{Deadline: deadline, KeepAlive: -1}, a.to.ID(), address)
}
