package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// dialer opens connections for one request, to an endpoint or to an external service.
type dialer struct {
	pool *Pool
	// backend is the ID of the backend. namespace is the namespace of the backend.
	backend, namespace string
	timeout            time.Duration
	// listed reports whether the endpoint still belongs to the backend. It may be called from any goroutine, even after
	// the request has ended.
	listed func() bool
	// spare is true if half of all file descriptors must be left for other requests.
	spare bool
}

type dialerKey struct{}

// dialer returns the dialer for the endpoint of the current attempt.
func (r *request) dialer() *dialer {
	return &dialer{
		pool: r.pool, backend: r.Backend.ID(), namespace: r.Backend.Namespace(), timeout: r.settings.Connect,
		listed: r.Listed(), spare: r.withoutRoom(),
	}
}

// listedInterval is the interval at which dialling checks that the endpoint is still listed. A deleted pod does not
// refuse connections, so the client would otherwise wait for the whole connect timeout.
const listedInterval = 100 * time.Millisecond

// errRemoved means that the endpoint was removed while a connection to it was opened. The endpoint did not receive
// anything.
var errRemoved = errors.New("the endpoint was removed from the backend")

// withLimits returns a context that ends after the connect timeout or when the endpoint is removed from the backend.
// The caller must call the returned function to release the context.
func (d *dialer) withLimits(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	ctx, gone := context.WithCancelCause(ctx)
	var look func()
	look = func() {
		switch {
		case ctx.Err() != nil:
		case d.listed():
			panics.AfterFunc("proxy/dial", listedInterval, look)
		default:
			gone(errRemoved)
		}
	}
	timer := panics.AfterFunc("proxy/dial", listedInterval, look)
	return ctx, func() {
		timer.Stop()
		gone(nil)
		cancel()
	}
}

// dialFailed wraps an error that occurred before the endpoint received any part of the request.
type dialFailed struct{ error }

func (d dialFailed) Unwrap() error { return d.error }

// open opens a connection, with TLS if config is not nil. The caller must close the connection, and then return its
// file descriptor to the returned budget share.
func (d *dialer) open(ctx context.Context, address string, config *tls.Config) (net.Conn, *budget.Share, error) {
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

// dial opens a connection. As in nginx, the connect timeout includes the TLS handshake, and a failed handshake counts
// as a failure to connect: the endpoint has not received any part of the request. wrap is applied to the socket before
// the handshake.
func (d *dialer) dial(ctx context.Context, address string, config *tls.Config,
	wrap func(net.Conn) net.Conn) (net.Conn, error) {
	ctx, end := d.withLimits(ctx)
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
	case errors.Is(context.Cause(ctx), errRemoved):
		err = errRemoved
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
		return nil, handshakeFailed{err}
	}
	return secured, nil
}

// handshakeFailed wraps the error of a TLS handshake, which includes the verification of the endpoint's certificate.
type handshakeFailed struct{ error }

func (h handshakeFailed) Unwrap() error { return h.error }
