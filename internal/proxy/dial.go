package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// dialing is what a new connection of a transport has to know of the request that it is for.
type dialing struct {
	timeout time.Duration
	// listed says whether the endpoint is still one. It may be called from any goroutine, also when the request has ended.
	listed func() bool
}

type dialingKey struct{}

// lookAgain is how often a connection that does not come about makes sure that its endpoint is still there. A pod that has
// gone does not refuse connections: nobody answers, and the client would wait for all of the connect timeout.
const lookAgain = 100 * time.Millisecond

// errGone is for an endpoint that left while a connection to it was opened. It has got nothing.
var errGone = errors.New("the endpoint has gone")

// limit returns a context that ends after the connect timeout, or when the endpoint leaves the list.
func (d *dialing) limit(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	if d.listed == nil {
		return ctx, cancel
	}
	ctx, gone := context.WithCancelCause(ctx)
	var look func()
	look = func() {
		switch {
		case ctx.Err() != nil:
		case d.listed():
			time.AfterFunc(lookAgain, look)
		default:
			gone(errGone)
		}
	}
	timer := time.AfterFunc(lookAgain, look)
	return ctx, func() {
		timer.Stop()
		gone(nil)
		cancel()
	}
}

// explained returns errGone where that is why a connection did not come about.
func explained(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errGone) {
		return errGone
	}
	return err
}

// dial opens a connection for a transport.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	return open(ctx, func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, network, address) })
}

// dialTLS returns what opens a connection with TLS on it. The handshake is a part of the dial, as in nginx: it has to end
// within the connect timeout, and an endpoint that fails in it has got nothing of the request.
func dialTLS(config *tls.Config) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return open(ctx, func(ctx context.Context) (net.Conn, error) {
			socket, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return handshake(ctx, socket, address, config)
		})
	}
}

func handshake(ctx context.Context, socket net.Conn, address string, config *tls.Config) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if config = config.Clone(); err == nil {
		config.ServerName = cmp.Or(config.ServerName, host)
	}
	secured := tls.Client(socket, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = socket.Close()
		return nil, err
	}
	return secured, nil
}

// open keeps to what the request says of new connections.
func open(ctx context.Context, connect func(context.Context) (net.Conn, error)) (net.Conn, error) {
	if d, ok := ctx.Value(dialingKey{}).(*dialing); ok {
		var end func()
		ctx, end = d.limit(ctx)
		defer end()
	}
	conn, err := connect(ctx)
	if err != nil {
		return nil, dialFailed{explained(ctx, err)}
	}
	return conn, nil
}

// dialFailed is what reverse_proxy takes for a DialError. Theirs alone does not tell what it was, a time limit for one.
type dialFailed struct{ error }

func (d dialFailed) Unwrap() []error { return []error{reverseproxy.NewDialError(d.error), d.error} }
