package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/panics"
)

// dialing is what a new connection has to know of the request that it is for.
type dialing struct {
	pool *Pool
	// backend is the ID of the endpoint's, and namespace that of the backend.
	backend, namespace string
	timeout            time.Duration
	// listed says whether the endpoint is still one. It may be called from any goroutine, also when the request has ended.
	listed func() bool
	// spare is true if half of all descriptors are left to others.
	spare bool
}

type dialingKey struct{}

// dialing is for the endpoint of the attempt.
func (r *request) dialing() *dialing {
	return &dialing{
		pool: r.pool, backend: r.Backend.ID(), namespace: r.Backend.Namespace(), timeout: r.settings.Connect,
		listed: r.Listed(), spare: r.withoutRoom(),
	}
}

// lookAgain is how often a connection that does not come about makes sure that its endpoint is still there. A pod that has
// gone does not refuse connections: nobody answers, and the client would wait for all of the connect timeout.
const lookAgain = 100 * time.Millisecond

// errGone is for an endpoint that left while a connection to it was opened. It has got nothing.
var errGone = errors.New("the endpoint has gone")

// limit returns a context that ends after the connect timeout, or when the endpoint leaves the list.
func (d *dialing) limit(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	ctx, gone := context.WithCancelCause(ctx)
	var look func()
	look = func() {
		switch {
		case ctx.Err() != nil:
		case d.listed():
			panics.AfterFunc("proxy/dial", lookAgain, look)
		default:
			gone(errGone)
		}
	}
	timer := panics.AfterFunc("proxy/dial", lookAgain, look)
	return ctx, func() {
		timer.Stop()
		gone(nil)
		cancel()
	}
}

// dialFailed is for an endpoint that has got nothing of the request.
type dialFailed struct{ error }

func (d dialFailed) Unwrap() error { return d.error }

// open opens a connection, with TLS on it if there is a configuration. Whoever closes it gives its descriptor back to the share.
func (d *dialing) open(ctx context.Context, address string, config *tls.Config) (net.Conn, *budget.Share, error) {
	share, err := d.pool.descriptor(d.namespace, d.spare)
	if err != nil {
		return nil, nil, dialFailed{err}
	}
	conn, err := d.dial(ctx, address, config, func(socket net.Conn) net.Conn { return socket })
	if err != nil {
		share.Give(1)
		return nil, nil, err
	}
	return conn, share, nil
}

// dial has the handshake as a part of it, as nginx does: that has to end within the connect timeout, and an endpoint that fails in it
// has got nothing of the request. The socket may be wrapped before.
func (d *dialing) dial(ctx context.Context, address string, config *tls.Config, wrap func(net.Conn) net.Conn) (net.Conn, error) {
	ctx, end := d.limit(ctx)
	defer end()
	conn, err := d.pool.guard.Dial(ctx, net.Dialer{}, d.backend, address)
	if err == nil {
		conn = wrap(conn)
		if config != nil {
			conn, err = handshake(ctx, conn, address, config)
		}
	}
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(context.Cause(ctx), errGone):
		err = errGone
	}
	return nil, dialFailed{err}
}

func handshake(ctx context.Context, socket net.Conn, address string, config *tls.Config) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if config = config.Clone(); err == nil {
		config.ServerName = cmp.Or(config.ServerName, host)
	}
	secured := tls.Client(&records{Conn: socket}, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = socket.Close()
		return nil, err
	}
	return secured, nil
}
