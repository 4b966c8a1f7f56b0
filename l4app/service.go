package l4app

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/mholt/caddy-l4/layer4"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/netaddr"
	"github.com/k8singress/k8singress/internal/process/ownapp"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/upstream/services"
)

// controller is the app k8singress of a Caddy configuration.
type controller interface {
	// Ports returns the TCP and UDP ports that Kubernetes objects define.
	Ports() *Ports
	// Services returns the registry in which Caddy modules follow Services.
	Services() *services.Registry
	// CheckChains returns an error if a chain of the app cannot be provisioned. A module that requests the app calls
	// it while ctx provisions the module.
	CheckChains(ctx caddy.Context) error
}

// drainGuests rejects new connections of handlers in the user's own layer4 app, and waits until the open ones have
// ended. It closes them when p.closing is closed.
func (p *Ports) drainGuests() {
	ended := p.guests.refuse()
	select {
	case <-ended:
	case <-p.closing:
		p.guests.close()
		<-ended
	}
}

// visit is an open connection of a guest.
type visit struct {
	*layer4.Connection
	end context.CancelFunc
}

// Close ends the connection, also while the handler is still looking for an endpoint.
func (v *visit) Close() error {
	v.end()
	return v.Connection.Close()
}

// guest forwards the connections of a Handler in the user's own layer4 app to the endpoints of a Service.
type guest struct {
	handler *Handler
	ports   *Ports
	// lanes maps the name of a port, such as "tcp/5432", to the *lane of the connections that were accepted there.
	lanes sync.Map
}

// lane holds what the connections of one handler on one port share.
type lane struct {
	account *account
	share   *budget.Share
	watch   watch
}

// lane returns the lane for connections that were accepted on an address.
func (g *guest) lane(at net.Addr) *lane {
	name := at.Network() + "/" + portOf(at)
	if l, ok := g.lanes.Load(name); ok {
		return l.(*lane)
	}
	a := g.ports.accounts.keep(name)
	l, _ := g.lanes.LoadOrStore(name, &lane{
		account: a, share: g.ports.budget.Share(g.handler.Service.Service.Namespace, name),
		watch: watch{idle: cmp.Or(g.handler.Policy.IdleTimeout, idleTimeout), drain: g.ports.drainTime, account: a},
	})
	return l.(*lane)
}

var errDatagrams = errors.New("the handler k8singress forwards TCP connections only: for UDP, use udp_services or " +
	"the annotation k8singress.io/udp-ports")

// forward forwards a connection to an endpoint of the Service. It returns when the connection has ended.
func (g *guest) forward(cx *layer4.Connection) (err error) {
	if netaddr.Transport(cx.LocalAddr().Network()) == "udp" {
		return errDatagrams
	}
	ends, end := context.WithCancel(cx.Context)
	defer end()
	v := &visit{cx, end}
	if !g.ports.guests.add(v) {
		return nil
	}
	defer g.ports.guests.remove(v)
	l := g.lane(cx.LocalAddr())
	if !l.account.enter(g.handler.Policy.MaxConnections) {
		l.account.warn(g.handler.log, tooMany,
			"rejecting a connection: the port has reached the handler's limit of connections",
			zap.Stringer("client", cx.RemoteAddr()), zap.Int("max_connections", g.handler.Policy.MaxConnections))
		return nil
	}
	defer l.account.leave()
	if !l.account.admit(g.handler.log, cx, l.share, &g.ports.tcp) {
		return nil
	}
	defer l.share.Give(perConnection)
	// The handler of this connection differs from the user's handler in what belongs to the port.
	h := &Handler{
		ProxyProtocol: g.handler.ProxyProtocol, Policy: g.handler.Policy, service: g.handler.service,
		log: g.handler.log, account: l.account, watch: &l.watch, workers: &g.ports.workers, ends: ends,
		outgoing: &g.ports.tcp, guard: g.ports.tables.Endpoints.Guard(), share: l.share,
	}
	// caddy-l4 does not recover from panics, which would end the process.
	if p := panics.Try(func() { err = h.passToService(cx) }); p != nil {
		l.account.fail(internalError)
		h.log.Error("forwarding a connection panicked", zap.Any("panic", p.Value), zap.ByteString("stack", p.Stack))
	}
	return err
}

// passToService forwards a connection to an endpoint of the Service of the handler.
func (h *Handler) passToService(cx *layer4.Connection) error {
	to, err := h.service.Backend(h.ends)
	if err != nil {
		h.account.warn(h.log, noEndpoint, "closing a connection: its Service cannot be used",
			zap.Stringer("client", cx.RemoteAddr()), zap.Error(err))
		return nil
	}
	return h.pass(cx, to)
}

// follow is called when a handler with a Service is provisioned.
func (h *Handler) follow(ctx caddy.Context) error {
	if h.Backend != "" || len(h.Split) > 0 || h.TLS != nil {
		return errors.New("a handler with a service cannot have a backend, a split or tls")
	}
	// The port of a chain counts its connections before they enter the chain.
	if insideChain(ctx) && h.Policy.MaxConnections > 0 {
		return errors.New("max_connections cannot be set in a stream chain: use the annotation " +
			"k8singress.io/stream-max-connections of the Service that names the chain")
	}
	app, err := ownapp.ForService[controller](ctx, h.Service)
	if err != nil {
		return err
	}
	if err := app.CheckChains(ctx); err != nil {
		return err
	}
	if scopeOf(ctx) == nil {
		ports := app.Ports()
		h.guest, h.log = &guest{handler: h, ports: ports}, ports.log.With(zap.Stringer("service", h.Service))
	}
	h.service = app.Services().Follow(ir.FollowedPort{ServicePort: h.Service, Protocol: ir.TCP})
	return nil
}

// Cleanup ends the use of the Service. Open connections continue.
func (h *Handler) Cleanup() error {
	if h.service != nil {
		h.service.Close()
	}
	return nil
}

// UnmarshalCaddyfile parses
//
//	k8singress {
//		service         <namespace>/<name>[:<port>]
//		proxy_protocol  v1|v2
//		idle_timeout    <duration>
//		connect_timeout <duration>
//		max_connections <number>
//	}
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() {
		return d.Errf("the handler k8singress takes no argument, such as %.64q: write its options in a block, such as "+
			"service default/db:5432", d.Val())
	}
	given := option.Given{}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		o, err := option.Select(given, handlerOptions, "the handler k8singress", name,
			"remove one of the two lines")
		if err != nil {
			return d.WrapErr(err)
		}
		var value string
		if !d.AllArgs(&value) {
			return d.Errf("%s takes one argument: write %s", name, o.accepts)
		}
		if o.parse(h, value) != nil {
			return d.Errf("%s: %.64q is not accepted: write %s", name, value, o.accepts)
		}
	}
	if h.Service.IsZero() {
		return d.Err("the handler k8singress needs a Service: write service default/db:5432")
	}
	return nil
}

// handlerOption is an option of the handler in a Caddyfile. accepts describes its values for messages.
type handlerOption struct {
	accepts string
	parse   func(h *Handler, value string) error
}

var handlerOptions = map[string]handlerOption{
	"service": {"namespace/name or namespace/name:port, such as default/db:5432",
		func(h *Handler, value string) (err error) {
			h.Service, err = ir.ParseServicePort(value)
			return err
		}},
	"proxy_protocol": {"v1 or v2", func(h *Handler, value string) error {
		h.ProxyProtocol = ir.ProxyVersion(value)
		return cmp.Or(checkProxyVersion(h.ProxyProtocol), nonempty(value))
	}},
	"idle_timeout": {"a duration above 0, such as 10m", func(h *Handler, value string) (err error) {
		h.Policy.IdleTimeout, err = positive(caddy.ParseDuration(value))
		return err
	}},
	"connect_timeout": {"a duration above 0, such as 5s", func(h *Handler, value string) (err error) {
		h.Policy.ConnectTimeout, err = positive(caddy.ParseDuration(value))
		return err
	}},
	"max_connections": {"a number above 0, such as 100", func(h *Handler, value string) (err error) {
		h.Policy.MaxConnections, err = positive(strconv.Atoi(value))
		return err
	}},
}

func nonempty(value string) error {
	if value == "" {
		return errors.New("the value is empty")
	}
	return nil
}

// positive returns an error unless a parsed value is greater than zero.
func positive[T int | time.Duration](value T, err error) (T, error) {
	if err == nil && value <= 0 {
		err = errors.New("the value must be greater than zero")
	}
	return value, err
}

var (
	_ caddy.CleanerUpper    = (*Handler)(nil)
	_ caddyfile.Unmarshaler = (*Handler)(nil)
)
