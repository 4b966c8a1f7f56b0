package l4app

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/mholt/caddy-l4/layer4"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/accesslog"
	peers "github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/netconn"
)

func init() { caddy.RegisterModule(new(ProxyAccept)) }

// ProxyAccept reads the PROXY protocol header (version 1 or 2) at the start of each connection. The next handlers get
// the address in the header as the client's address. A connection is closed if it has no header or its peer is not
// trusted. If the header contains no TCP addresses, as in health checks (LOCAL, UNKNOWN), the peer's address is kept.
// Unlike with caddy-l4's own handler, the bytes after the header can be moved by the kernel, without copying them into
// this process.
type ProxyAccept struct {
	// Trusted lists the networks or IP addresses of peers whose PROXY protocol headers are trusted. Default: all
	// networks.
	Trusted []string `json:"trusted,omitempty"`
	// Timeout is the maximum time for receiving the header. Default: 5s.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	trusted *peers.Policy
	account *account
	log     *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (*ProxyAccept) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "layer4.handlers.k8singress_proxy_protocol",
		New: func() caddy.Module { return new(ProxyAccept) }}
}

// Provision validates the trusted networks and sets the default timeout.
func (p *ProxyAccept) Provision(ctx caddy.Context) error {
	for _, text := range p.Trusted {
		if _, err := netip.ParsePrefix(text); err == nil {
			continue
		}
		if _, err := netip.ParseAddr(text); err != nil {
			return fmt.Errorf("trusted %q is not a network: write it as 192.0.2.0/24", text)
		}
	}
	if p.Timeout <= 0 {
		p.Timeout = caddy.Duration(ir.ProxyTimeout)
	}
	p.trusted = peers.New(ir.Clients{Trusted: p.Trusted})
	p.log, p.account = ctx.Logger(), new(account)
	if s := scopeOf(ctx); s != nil {
		p.log, p.account = s.log, s.account
	}
	return nil
}

// Handle reads the PROXY protocol header, and calls the next handler with a connection that has the client's address.
func (p *ProxyAccept) Handle(cx *layer4.Connection, next layer4.Handler) error {
	peer := zap.Stringer("client", cx.RemoteAddr())
	if !p.trusted.Trusts(netconn.AddrPort(cx.RemoteAddr()).Addr()) {
		recordOf(cx).setStatus(accesslog.StreamForbidden)
		p.account.warn(p.log, notTrusted,
			"closing a connection: its peer is not trusted to send a PROXY protocol header", peer)
		return nil
	}
	// The bytes that caddy-l4 has buffered come before the bytes that are still in the socket.
	buffered := make([]byte, len(cx.MatchingBytes()))
	if _, err := io.ReadFull(cx, buffered); err != nil {
		return err
	}
	conn := netconn.NewProxied(netconn.Replay(cx.Conn, buffered), time.Duration(p.Timeout))
	if err := conn.ReadHeader(); err != nil {
		if errors.Is(err, io.EOF) {
			// This is not an error: load balancers check the port by opening a connection without sending any data.
			return nil
		}
		p.account.warn(p.log, noHeader, "closing a connection: it lacks the required PROXY protocol header", peer,
			zap.Error(err))
		return nil
	}
	recordOf(cx).setClient(conn.RemoteAddr())
	return next.Handle(cx.Wrap(conn))
}

var (
	_ caddy.Provisioner  = (*ProxyAccept)(nil)
	_ layer4.NextHandler = (*ProxyAccept)(nil)
)
