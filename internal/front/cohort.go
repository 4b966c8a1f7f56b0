package front

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/connlimit"
	"github.com/k8singress/k8singress/internal/panics"
)

// cohort has the connections that a group got while it had servers without a break. When there is none any more, it ends: answers ask
// clients to leave, idle connections are closed, and requests under way are finished.
type cohort struct {
	group *Group
	tls   *tls.Config
	// port is that of an address that Open has opened; it is 0 for those of the server.
	port uint16
	// sources are the listeners that connections come from. conns are all of these that are open, and pending those of which is not
	// known yet who serves them.
	sources, conns, pending atomic.Int64
	leaving                 atomic.Bool
	ended                   chan struct{}
	// threes are the sockets of HTTP/3. They belong to the lock of the front.
	threes []*quicSocket

	mu      sync.Mutex
	servers map[settings]*servers
	// latest are the servers that got the latest connection. They stay without connections, and all other servers do not.
	latest *servers
	// driven are what drivers want to have called when the cohort leaves.
	driven map[*Info]func()
}

func newCohort(g *Group) *cohort {
	return &cohort{
		group: g, tls: g.tlsConfig(), ended: make(chan struct{}), servers: map[settings]*servers{}, driven: map[*Info]func(){},
	}
}

// ServeHTTP has the server of the configuration that Caddy runs answer.
func (k *cohort) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	serving := k.group.Serving()
	limits := serving.adjusted(limitsOf(serving.Server))
	t := trafficOf(r.Context())
	last := t.requests.Add(1) >= int64(limits.Requests) && limits.Requests > 0
	if (last || t.leaving.Load() || k.leaving.Load()) && r.Header["Upgrade"] == nil {
		w.Header().Set("Connection", "close")
	}
	t.answer(w, r, serving, &limits, k.port)
}

// begin serves a connection, on a goroutine of its own unless there is nothing to wait for. It closes one for which there is no room.
func (k *cohort) begin(conn net.Conn, m *manner) {
	n := k.enter(conn, m)
	if n == nil {
		return
	}
	k.conns.Add(1)
	k.pending.Add(1)
	switch {
	case m.secure || n.proxied || k.drives(m, ""):
		panics.Go("front/connection", func() { k.serve(n, m) }, func() { _ = n.Close() })
	default:
		k.hand(n, n, "", m)
	}
}

var errPlainHTTP = errors.New("client sent an HTTP request to an HTTPS server")

// serve performs the TLS handshake, if there is one, and gives the connection to the server of its protocol.
func (k *cohort) serve(n *newcomer, m *manner) {
	handed := false
	defer func() {
		if !handed {
			k.pending.Add(-1)
			k.gone(n.place)
		}
	}()
	if !n.introduce(m) {
		_ = n.Close()
		return
	}
	if !m.secure {
		handed = true
		k.hand(n, n, "", m)
		return
	}
	secured, err := k.secure(n, m)
	if err != nil {
		k.handshakeFailed(n, err)
		return
	}
	handed = true
	k.hand(n, secured, secured.ConnectionState().NegotiatedProtocol, m)
}

// handshakeFailed closes a connection without TLS, unless Divert has taken it. Failed handshakes are counted, and
// logged at debug level only.
func (k *cohort) handshakeFailed(n *newcomer, err error) {
	if errors.Is(err, ErrTaken) {
		return
	}
	if record := (tls.RecordHeaderError{}); errors.As(err, &record) && record.Conn != nil && looksLikeHTTP(record.RecordHeader) {
		_, _ = io.WriteString(record.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
		err = errPlainHTTP
	}
	if !n.ended.Load() {
		k.group.front.handshakeFailed(err)
	}
	_ = n.Close()
	stdlib().Debug("http: TLS handshake error", zap.Stringer("client", n.RemoteAddr()), zap.Error(err))
}

// secure performs the TLS handshake. All of it has one time limit.
func (k *cohort) secure(conn net.Conn, m *manner) (*tls.Conn, error) {
	until := time.Now().Add(m.handshake)
	if err := conn.SetDeadline(until); err != nil {
		return nil, err
	}
	if m.divert != nil {
		var err error
		if conn, err = m.divert(conn, until); err != nil {
			return nil, err
		}
	}
	secured := tls.Server(conn, k.tls)
	if err := secured.HandshakeContext(k.context()); err != nil {
		return nil, err
	}
	return secured, secured.SetDeadline(time.Time{})
}

// context is that of handshakes, which the deadline ends.
func (k *cohort) context() context.Context {
	ctx := context.Background() //nolint:forbidigo // A connection belongs to no configuration.
	if k.port == 0 {
		return ctx
	}
	return context.WithValue(ctx, portKey{}, k.port)
}

// looksLikeHTTP is what net/http takes for the beginning of a request.
func looksLikeHTTP(head [5]byte) bool {
	switch string(head[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		return true
	}
	return false
}

// hand gives a connection to the driver, or to net/http. The protocol is the one that client and server have agreed on.
func (k *cohort) hand(n *newcomer, conn net.Conn, protocol string, m *manner) {
	if k.drives(m, protocol) {
		panics.Guard("front/connection", func() { k.drive(n, conn, m) }, func() { _ = conn.Close() })
		return
	}
	s := k.serversFor(m)
	if protocol == "h2" {
		s.two.push(conn)
		return
	}
	k.group.front.handedOver(WithoutHTTP1)
	s.one.push(conn)
}

// WithoutHTTP1 is the reason for which a connection goes to net/http: the protocols of its server have no HTTP/1.1.
const WithoutHTTP1 = "protocols"

// drives says whether the driver serves a connection.
func (k *cohort) drives(m *manner, protocol string) bool {
	return k.group.front.Drive != nil && m.http1 && (protocol == "" || protocol == "http/1.1")
}

// serversFor returns the servers for a connection with the limits as they are now, and counts the connection until left is called.
func (k *cohort) serversFor(m *manner) *servers {
	limits := k.group.Serving().adjusted(m.limits)
	limits.Streams = k.group.front.requests.streams(limits.Streams)
	of := limits.settings(m.http1)
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.servers[of]
	if s == nil {
		s = &servers{settings: of}
		s.one, s.two = k.start(s, of.http2), k.start(s, true)
		k.servers[of] = s
	}
	before := k.latest
	k.latest = s
	s.conns++
	k.retire(before)
	return s
}

// left is called when a connection that serversFor has counted has ended.
func (k *cohort) left(s *servers, place *connlimit.Place) {
	k.mu.Lock()
	s.conns--
	k.retire(s)
	k.mu.Unlock()
	k.gone(place)
}

// gone is called when a connection that begin has counted has ended.
func (k *cohort) gone(place *connlimit.Place) {
	k.conns.Add(-1)
	place.Leave()
}

// retire shuts servers down that have no connection, unless they got the latest one: each change of the limits starts new servers, and
// the old ones would keep their goroutines until the cohort ends. The caller holds the lock of the cohort.
func (k *cohort) retire(s *servers) {
	if s == nil || s.conns > 0 || s == k.latest {
		return
	}
	delete(k.servers, s.settings)
	ctx := context.Background() //nolint:forbidigo // No connection is left that a deadline could cut off.
	s.one.shutdown(ctx)
	s.two.shutdown(ctx)
}

// drain begins the end. It may be called once.
func (k *cohort) drain(ctx context.Context) {
	k.leaving.Store(true)
	panics.Go("front/drain", func() { k.end(context.WithoutCancel(ctx)) })
}

// cut ends what the end of the process does not.
func (k *cohort) cut() {
	k.group.front.mu.Lock()
	threes := k.threes
	k.group.front.mu.Unlock()
	for _, q := range threes {
		q.cut()
	}
}

const (
	// lookAfter is how often connections are looked at that have to end.
	lookAfter = 10 * time.Millisecond
	// idleEnd is after how long one counts as idle that has not sent anything, as for net/http.
	idleEnd = 5 * time.Second
)

// end waits for all connections. What has been accepted is answered: http.Server.Shutdown, which drops requests that it has just
// read, is called for those of HTTP/1.1 only when each of them is in its handler, or silent.
func (k *cohort) end(ctx context.Context) {
	defer close(k.ended)
	k.callDriven()
	begin := time.Now()
	for k.sources.Load() > 0 || k.conns.Load() > 0 {
		k.mu.Lock()
		for _, s := range k.servers {
			s.one.SetKeepAlivesEnabled(false)
			if k.sources.Load() == 0 && k.pending.Load() == 0 {
				s.two.shutdown(ctx)
				if time.Since(begin) > idleEnd {
					s.one.shutdown(ctx)
				}
			}
		}
		k.mu.Unlock()
		<-time.After(lookAfter)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.servers {
		s.one.shutdown(ctx)
		s.two.shutdown(ctx)
	}
}
