package front

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/limits"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/netaddr"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// ErrTaken is returned by Divert if other code has taken over the connection. This package then neither serves nor
// closes the connection.
var ErrTaken = errors.New("other code has taken over the connection")

// Divert inspects a connection before its TLS handshake. The parameter until is the deadline of the handshake. Divert
// returns the connection to use for the handshake: conn itself, or a wrapper whose NetConn method returns conn. If
// Divert returns ErrTaken, this package no longer uses the connection. If it returns any other error, this package
// closes the connection.
type Divert func(conn net.Conn, until time.Time) (net.Conn, error)

// Answer handles a request.
type Answer func(w message.Writer, r *message.Request)

// Binding connects a Caddy server of one loaded configuration to the Front of this process, which serves the
// connections of this server. It holds the settings and functions that the Front uses for these connections. Each
// reload of Caddy creates new Bindings.
type Binding struct {
	Context caddy.Context
	Server  *caddyhttp.Server
	// Name identifies the server in successive configurations, also if the name of the Caddy server changes. Default:
	// the name of the Caddy server.
	Name string
	// Admit wraps each accepted connection, for example to read its PROXY protocol header. It must not block.
	Admit func(net.Conn) net.Conn
	// Divert returns the Divert function for the TLS connections of a listener. at is the address of the listener. port
	// is the port of that address if Front.Open has opened it, otherwise 0.
	Divert func(at net.Addr, port uint16) Divert
	// Answer handles requests in place of the Caddy server, for all HTTP versions. It is nil if the Caddy server has
	// settings or routes that only Caddy can handle.
	Answer Answer
	// Reason explains, in one word, why Answer is nil. It is passed to Front.HandedOver.
	Reason string
	// ByCaddy handles the requests for which Answer is nil. It must let Server handle them. If ByCaddy is nil, Server
	// gets them directly.
	ByCaddy http.Handler
	// AnswerOnListener handles requests that arrive at an address that Front.Open has opened. Conn.Listener of the
	// request is the port of this address. If AnswerOnListener is nil, the Caddy server handles these requests.
	AnswerOnListener Answer
	// ClientLimits returns the limits in the ConfigMap, which take precedence over the limits of the Caddy server. It
	// is called for each connection and each request. It returns the same pointer until the limits change. If
	// ClientLimits is nil, the limits of the Caddy server apply.
	ClientLimits func() *ir.ClientConnections
	// Handshake returns the TLS configuration for a handshake. config is the configuration that the Caddy server would
	// use; Handshake returns config itself or a changed copy. If Handshake is nil, config is used.
	Handshake func(hello *tls.ClientHelloInfo, config *tls.Config) *tls.Config
	// Clients returns the policy that determines the clients of requests. The proxies that it names are exempt from the
	// limit of connections per client. Clients must not be nil.
	Clients func() *realip.Policy
	// HandshakeTimeout is the maximum duration of a TLS handshake. 0 means the timeout for reading a request header.
	HandshakeTimeout time.Duration
	// SharePorts allows the addresses of the Caddy server to be opened even if another process listens on them. If it
	// is false, opening such an address fails.
	SharePorts bool
	// BeforeTLS and AfterTLS are the listener wrappers of the administrator. BeforeTLS wraps connections before the TLS
	// handshake, and AfterTLS wraps connections after it.
	BeforeTLS, AfterTLS []caddy.ListenerWrapper
	// H2C allows HTTP/2 without TLS, like "h2c" in the protocols of the Caddy server.
	H2C bool
	// HeadFixed means that the maximum size of request headers in the Caddy server is a setting of the administrator,
	// so snippets cannot raise it.
	HeadFixed bool

	front *Front
	tls   *tls.Config
	// limits are the limits (timeouts and maximum sizes) for requests that net/http or http3 has read.
	limits currentLimits
	// group contains the server and the servers with the same name in other configurations. It is nil until the server
	// starts. open is the number of open listeners of the server. left is true once the server has been removed from
	// group. group, open and left are guarded by Front.mu.
	group *Group
	conns *connSet
	open  int
	left  bool
}

// Prepare makes the front listen on the TCP addresses of the server s.Server, in place of Caddy. It must be called
// while Caddy provisions the server. Forget must be called when Caddy cleans the server up. Prepare replaces the
// network (tcp) in the server's listen addresses, so that Caddy calls the front to open them. The JSON configuration
// keeps the original network. Otherwise Caddy would find no server with the address ":80" when it adds redirects from
// HTTP to HTTPS, and would open that address itself.
func (f *Front) Prepare(s *Binding) {
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
	f.bindings[s.Server] = s
}

// Forget undoes Prepare.
func (s *Binding) Forget() {
	s.front.mu.Lock()
	defer s.front.mu.Unlock()
	delete(s.front.bindings, s.Server)
	s.leave()
}

// Wrap makes the front serve the connections of a listener that Caddy has opened for the server. Accept of the returned
// listener therefore never returns a connection.
func (s *Binding) Wrap(next net.Listener) net.Listener {
	s.front.mu.Lock()
	defer s.front.mu.Unlock()
	s.join()
	s.open++
	if c, ok := next.(*claim); ok {
		_, port, _ := net.SplitHostPort(c.address.JoinHostPort(0))
		secure := len(s.Server.TLSConnPolicies) > 0 && !withoutTLS(s.Context, port)
		c.attach(s.group, s.conns, s.connConfig(next.Addr(), secure, protocolsAt(s.Server, c.written), 0))
		return c
	}
	a := &adopted{Listener: next, of: s, conns: s.conns, config: s.serverConfig(next.Addr()), done: make(chan struct{})}
	a.config.wrap(s.conns, next.Addr())
	s.conns.sources.Add(1)
	panics.Go("front/accept", a.accept)
	return a
}

var errNoTLS = errors.New("the server no longer uses TLS")

// configForClient returns the TLS configuration for a handshake: the configuration of the Caddy server, as changed by
// s.Handshake.
func (s *Binding) configForClient(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	get := s.tls.GetConfigForClient
	if get == nil {
		return nil, errNoTLS
	}
	if helloOf(hello.Conn) == nil {
		hello.Conn = &quicHello{Conn: hello.Conn}
	}
	config, err := get(hello)
	if err != nil || config == nil || s.Handshake == nil {
		return config, err
	}
	return s.Handshake(hello, config), nil
}

func (s *Binding) name() string { return cmp.Or(s.Name, s.Server.Name()) }

// join adds the server to its Group, which contains the servers with the same name in successive configurations. The
// callers of join, leave and closed must hold Front.mu.
func (s *Binding) join() {
	if s.group != nil {
		return
	}
	s.limits.configured = s.limitsOfServer()
	s.tls = s.Server.TLSConnPolicies.TLSConfig(s.Context)
	s.group = s.front.group(s.name())
	s.conns = s.group.join(s)
}

func (s *Binding) leave() {
	if s.group == nil || s.left {
		return
	}
	s.left = true
	s.group.leave(s)
}

// closed decrements the number of open listeners of the server. When the last one is closed, it removes the server from
// its Group. It must be called each time that a listener of the server is closed.
func (s *Binding) closed() {
	if s.open--; s.open == 0 {
		s.leave()
	}
}

// stop is called by Caddy when it stops the server, before Caddy cleans up the modules of the configuration. No request
// may reach these modules after stop has returned. When the process exits, stop waits for requests in progress.
func (s *Binding) stop(ctx context.Context) error {
	s.front.mu.Lock()
	all := s.front.listenersOf(s.group)
	s.leave()
	if s.conns != nil {
		all = append(all, s.conns)
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

// connConfig holds the settings for the connections of one listener.
type connConfig struct {
	of *Binding
	// limits are the limits (timeouts and maximum sizes) for the connections of the listener.
	limits currentLimits
	http1  bool
	secure bool
	admit  func(net.Conn) net.Conn
	divert Divert
	// wrapping passes the connections through listener wrappers. It is nil without wrappers.
	wrapping *wrapping
	// handshake is the maximum duration of the TLS handshake.
	handshake time.Duration
	alive     net.KeepAliveConfig
}

// serverConfig returns the settings for the connections of a listener that Caddy has opened itself. These connections
// can use all protocols of the server.
func (s *Binding) serverConfig(at net.Addr) *connConfig {
	return s.listenerConfig(at, 0)
}

// listenerConfig returns the settings for the connections of a listener. at is the address of the listener. If
// Front.Open has opened this address, port is its port, otherwise 0.
func (s *Binding) listenerConfig(at net.Addr, port uint16) *connConfig {
	return s.connConfig(at, len(s.Server.TLSConnPolicies) > 0, s.Server.Protocols, port)
}

// answerAt returns the function that handles requests at a port that Front.Open has opened, or at the server's own
// addresses if port is 0. It returns nil if the Caddy server handles these requests.
func (s *Binding) answerAt(port uint16) Answer {
	if port == 0 {
		return s.Answer
	}
	return s.AnswerOnListener
}

// ServeByCaddy lets the Caddy server handle a request for which Answer is nil.
func (s *Binding) ServeByCaddy(w http.ResponseWriter, r *http.Request) {
	if s.ByCaddy != nil {
		s.ByCaddy.ServeHTTP(w, r)
		return
	}
	s.Server.ServeHTTP(w, r)
}

func (s *Binding) connConfig(at net.Addr, secure bool, protocols []string, port uint16) *connConfig {
	v := s.Server
	m := &connConfig{
		of: s, secure: secure, admit: s.Admit, handshake: s.HandshakeTimeout, alive: keepAlive(v),
		http1: slices.Contains(protocols, "h1"),
	}
	m.limits.configured = s.limitsOfServer()
	m.limits.configured.H2C = s.H2C || slices.Contains(protocols, "h2c")
	if m.handshake == 0 {
		m.handshake = m.limits.configured.Head
	}
	if secure && s.Divert != nil {
		m.divert = s.Divert(at, port)
	}
	return m
}

// currentLimits holds the limits in the configuration of a Caddy server. It also caches the effective limits, in which
// the limits in the ConfigMap take precedence. They are computed once for each change of the ConfigMap.
type currentLimits struct {
	configured limits.Limits
	// result caches the limits that l.under(s) computes. It is nil until the first call of that method.
	result atomic.Pointer[adjustedLimits]
}

// adjustedLimits are the effective limits of a Caddy server: limits in the ConfigMap, which are also stored in the
// field by, replace the server's own limits.
type adjustedLimits struct {
	by *ir.ClientConnections
	limits.Limits
}

// l.under(s) returns the effective limits for connections of the server s: each limit in the ConfigMap takes precedence
// over the same limit in the server's configuration. The caller must not modify the result.
func (l *currentLimits) under(s *Binding) *limits.Limits {
	if s.ClientLimits == nil {
		return &l.configured
	}
	by := s.ClientLimits()
	if last := l.result.Load(); last != nil && last.by == by {
		return &last.Limits
	}
	next := &adjustedLimits{by, l.configured.With(by)}
	l.result.Store(next)
	return &next.Limits
}

// keepAlive returns the TCP keep-alive settings that Caddy would use for the server.
func keepAlive(s *caddyhttp.Server) net.KeepAliveConfig {
	return net.KeepAliveConfig{
		Enable: s.KeepAliveInterval >= 0, Interval: time.Duration(s.KeepAliveInterval),
		Idle:  time.Duration(s.KeepAliveIdle),
		Count: s.KeepAliveCount,
	}
}
