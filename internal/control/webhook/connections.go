package webhook

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"golang.org/x/time/rate"
)

// maxConnections is the maximum number of connections. The API server needs few of them.
const maxConnections = 128

// The limits of TLS handshakes, which take half a millisecond each. A handshake beyond the limits waits for its turn,
// so many new connections at once do not occupy the processors. If maxConnections clients connect at once, the last
// one waits for four seconds, which is less than headerTimeout. The API server keeps its connections.
const (
	handshakesPerSecond = 30
	handshakesAtOnce    = 8
)

// connections limits the connections of a server. At the limit, it closes a connection that is not needed to accept
// another, so that other programs cannot keep the API server out.
type connections struct {
	places     chan struct{}
	handshakes *rate.Limiter
	// refused is the set of the connections whose request was refused before its body was read. net/http waits for half
	// a second before it closes them, so that the client gets the response. idle is the set of the connections that
	// wait for their next request. The keys are *tls.Conn.
	refused, idle sync.Map
}

func newConnections() *connections {
	return &connections{places: make(chan struct{}, maxConnections),
		handshakes: rate.NewLimiter(handshakesPerSecond, handshakesAtOnce)}
}

// connectionKey is the key of the connection in the context of a request.
type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// follow is called when the state of a connection changes.
func (s *connections) follow(c net.Conn, state http.ConnState) {
	s.refused.Delete(c)
	if state == http.StateIdle {
		s.idle.Store(c, nil)
	} else {
		s.idle.Delete(c)
	}
}

// handler returns a handler that records which requests were refused.
func (s *connections) handler(h *Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.serve(w, r) != nil && http.NewResponseController(w).Flush() == nil {
			s.refused.Store(r.Context().Value(connectionKey{}), nil)
		}
	})
}

// closeOne closes a connection that is not needed, if there is one. It does not wait for its peer.
func (s *connections) closeOne() {
	for _, set := range []*sync.Map{&s.refused, &s.idle} {
		for c := range set.Range {
			_ = c.(*tls.Conn).NetConn().Close()
			set.Delete(c)
			return
		}
	}
}

// limit returns a listener that accepts at most maxConnections connections at a time. At the limit, it closes another
// connection, or else the new one.
func (s *connections) limit(l net.Listener) net.Listener { return &limited{l, s} }

type limited struct {
	net.Listener
	connections *connections
}

// Accept returns the next connection within the limit.
func (l *limited) Accept() (net.Conn, error) {
	places := l.connections.places
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if len(places) == cap(places) {
			l.connections.closeOne()
		}
		select {
		case places <- struct{}{}:
			return &counted{Conn: c, leave: sync.OnceFunc(func() { <-places })}, nil
		default:
			_ = c.Close()
		}
	}
}

// counted is a connection that counts until it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c *counted) Close() error {
	c.leave()
	return c.Conn.Close()
}
