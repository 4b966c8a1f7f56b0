package front

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/netaddr"
	"github.com/k8singress/k8singress/internal/panics"
)

// ErrTaken is what Divert returns for a connection that is no business of the front any more.
var ErrTaken = errors.New("the connection is served by somebody else")

// Divert looks at a connection before its TLS handshake, which is to be complete at a time. It returns the connection
// to go on with, ErrTaken, or another error, for which the connection is closed. A connection around the given one has
// the method NetConn, which returns it.
type Divert func(conn net.Conn, until time.Time) (net.Conn, error)

// Answer answers a request.
type Answer func(w message.Writer, r *message.Request)

// Serving is a server of one configuration, and how connections become requests for it.
type Serving struct {
	Context caddy.Context
	Server  *caddyhttp.Server
	// Admit makes a connection of one that was accepted. It must not wait.
	Admit func(net.Conn) net.Conn
	// Divert is for the connections with TLS that are accepted at an address. The port is that of one that Open has opened, or 0.
	Divert func(at net.Addr, port uint16) Divert
	// Answer answers requests in place of Server, whatever version of HTTP they come by. It is nil for a server that
	// does more than its routes are known to do here.
	Answer Answer
	// Reason says in one word why Answer is nil.
	Reason string
	// AnswerBeside answers those that come by an address that Open has opened; Conn.Listener is its port. It is nil where Server does.
	AnswerBeside Answer
	// Adjust returns the limits that hold now for connections with those of Server. It is asked for each connection and each request, and
	// is nil where they stay.
	Adjust func(Limits) Limits
	// Handshake returns what TLS agrees on with a client that asks for a server name, from what Server would: config itself, or a
	// copy with changes. The port is that of an address that Open has opened, or 0. nil changes nothing.
	Handshake func(port uint16, server string, config *tls.Config) *tls.Config
	// Exempt reports whether an address is the address of a proxy, which may have any number of connections. Nil means
	// that there is none.
	Exempt func(netip.Addr) bool
	// HandshakeTimeout is how long a TLS handshake may take. 0 is as long as the head of a request.
	HandshakeTimeout time.Duration
	// SharePorts allows another process to listen on the addresses of Server, too. Otherwise they are not opened then.
	SharePorts bool
	// H2C lets clients speak HTTP/2 without TLS, as "h2c" among the protocols of Server does.
	H2C bool

	front *Front
	tls   *tls.Config
	// group is nil until the server starts. It belongs to the lock of the front, as do open, how many listeners there are, and left.
	group  *Group
	cohort *cohort
	open   int
	left   bool
}

// Prepare has the front listen at the TCP addresses of a server in place of Caddy. It is called while the server is provisioned, and
// Forget when that is cleaned up. The addresses get the name of our network here and not in the JSON: Caddy looks for a server with
// the address ":80" where it adds redirects for sites, and would open that address once more if none has it.
func (f *Front) Prepare(s *Serving) {
	s.front = f
	for i, text := range s.Server.Listen {
		if address, err := caddy.ParseNetworkAddress(text); err == nil {
			if on, ok := netaddr.OnFront(address); ok {
				s.Server.Listen[i] = on.String()
			}
		}
	}
	s.Server.RegisterOnStop(s.stop)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.servings[s.Server] = s
}

// Forget is the end of what Prepare began.
func (s *Serving) Forget() {
	s.front.mu.Lock()
	defer s.front.mu.Unlock()
	delete(s.front.servings, s.Server)
	s.leave()
}

// Wrap takes the connections of a listener that Caddy has opened for the server, and returns one that never has any.
func (s *Serving) Wrap(next net.Listener) net.Listener {
	s.front.mu.Lock()
	defer s.front.mu.Unlock()
	s.join()
	s.open++
	if c, ok := next.(*claim); ok {
		_, port, _ := net.SplitHostPort(c.address.JoinHostPort(0))
		secure := len(s.Server.TLSConnPolicies) > 0 && !withoutTLS(s.Context, port)
		c.attach(s.group, s.cohort, s.manner(next.Addr(), secure, protocolsAt(s.Server, c.written), 0))
		return c
	}
	a := &adopted{Listener: next, of: s, cohort: s.cohort, manner: s.usual(next.Addr()), done: make(chan struct{})}
	s.cohort.sources.Add(1)
	panics.Go("front/accept", a.accept)
	return a
}

var errNoTLS = errors.New("the server has no TLS any more")

// configForClient is what its server would take for a handshake, with the changes of Handshake.
func (s *Serving) configForClient(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	get := s.tls.GetConfigForClient
	if get == nil {
		return nil, errNoTLS
	}
	config, err := get(hello)
	if err != nil || config == nil || s.Handshake == nil {
		return config, err
	}
	return s.Handshake(PortOf(hello.Context()), hello.ServerName, config), nil
}

// join adds the server to those that its group chooses from. It is called with the lock of the front, as are leave and closed.
func (s *Serving) join() {
	if s.group != nil {
		return
	}
	s.tls = s.Server.TLSConnPolicies.TLSConfig(s.Context)
	s.group = s.front.group(s.Server.Name())
	s.cohort = s.group.join(s)
}

func (s *Serving) leave() {
	if s.group == nil || s.left {
		return
	}
	s.left = true
	s.group.leave(s)
}

// closed is called for each listener of the server that is closed.
func (s *Serving) closed() {
	if s.open--; s.open == 0 {
		s.leave()
	}
}

// stop is called by Caddy when it stops the server, and before it cleans up the modules of the configuration: no request may come to
// them after that. At the end of the process it waits for requests under way.
func (s *Serving) stop(ctx context.Context) error {
	s.front.mu.Lock()
	all := s.front.besideOf(s.group)
	s.leave()
	if s.cohort != nil {
		all = append(all, s.cohort)
	}
	s.front.mu.Unlock()
	if !caddy.Exiting() {
		return nil
	}
	for _, k := range all {
		select {
		case <-k.ended:
		case <-ctx.Done():
			k.cut()
		}
	}
	return nil
}

// manner is how the connections of one listener are served.
type manner struct {
	of *Serving
	// limits are those of the server, which its Adjust may change.
	limits Limits
	http1  bool
	secure bool
	admit  func(net.Conn) net.Conn
	divert Divert
	// handshake is how long that of TLS may take.
	handshake time.Duration
	alive     net.KeepAliveConfig
}

// usual is for listeners of which the server says nothing in particular.
func (s *Serving) usual(at net.Addr) *manner {
	return s.besideAt(at, 0)
}

// besideAt is for addresses that Open has opened.
func (s *Serving) besideAt(at net.Addr, port uint16) *manner {
	return s.manner(at, len(s.Server.TLSConnPolicies) > 0, s.Server.Protocols, port)
}

// answering returns what answers the requests that come by a port that Open has opened, or by those of the server, which is 0. It is nil
// where Server does.
func (s *Serving) answering(port uint16) Answer {
	if port == 0 {
		return s.Answer
	}
	return s.AnswerBeside
}

func (s *Serving) manner(at net.Addr, secure bool, protocols []string, port uint16) *manner {
	v := s.Server
	m := &manner{
		of: s, secure: secure, admit: s.Admit, handshake: s.HandshakeTimeout, alive: keepAlive(v), limits: limitsOf(v),
		http1: slices.Contains(protocols, "h1"),
	}
	m.limits.HTTP2 = s.H2C || slices.Contains(protocols, "h2c")
	if m.handshake == 0 {
		m.handshake = m.limits.Head
	}
	if secure && s.Divert != nil {
		m.divert = s.Divert(at, port)
	}
	return m
}

// adjusted are limits as they are now.
func (s *Serving) adjusted(of Limits) Limits {
	if s.Adjust == nil {
		return of
	}
	return s.Adjust(of)
}

// keepAlive is what Caddy asks the kernel for.
func keepAlive(s *caddyhttp.Server) net.KeepAliveConfig {
	return net.KeepAliveConfig{
		Enable: s.KeepAliveInterval >= 0, Interval: time.Duration(s.KeepAliveInterval), Idle: time.Duration(s.KeepAliveIdle),
		Count: s.KeepAliveCount,
	}
}
