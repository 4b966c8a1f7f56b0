package l4app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/mholt/caddy-l4/layer4"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/accesslog"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/loops"
	"github.com/k8singress/k8singress/internal/process/netconn"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/reach"
	"github.com/k8singress/k8singress/internal/upstream/services"
	"github.com/k8singress/k8singress/internal/upstream/split"
)

func init() { caddy.RegisterModule(new(Handler)) }

// Handler forwards a TCP connection to a ready endpoint of a Kubernetes Service. If an endpoint cannot be reached,
// another endpoint is tried. Changed endpoints take effect without a reload, and no Kubernetes object needs to refer to
// the Service. If the Service does not exist or has no endpoints, the connection is closed. Open connections continue
// after a reload.
//
// The controller also uses the handler, with `backend` or `split`, as the last handler of each port that a Kubernetes
// object defines.
type Handler struct {
	// Service is the Service and its port, in the form `namespace/name:port`. The port is a number or a name. Without
	// `:port`, it is the first port of the Service.
	Service ir.ServicePort `json:"service,omitzero"`
	document.StreamBackends
	// ProxyProtocol is the version of the PROXY protocol header, "v1" or "v2", that is sent to the endpoint first and
	// contains the client's address. It has an effect for TCP only. Default: no header is sent.
	ProxyProtocol ir.ProxyVersion `json:"proxy_protocol,omitempty"`
	// Policy holds the timeouts and limits of the port.
	Policy ir.StreamPolicy `json:"policy,omitzero"`
	// TLS configures TLS for the connections to endpoints. It has an effect for TCP only. Default: no TLS.
	TLS *ir.BackendTLS `json:"tls,omitempty"`

	// service and guest are set if Service is set. guest is nil on the controller's own ports.
	service  *services.Service
	guest    *guest
	backends *split.Split[*balancer.Backend]
	secured  *secured
	account  *account
	// accessLog is used for UDP only. The access log record of a TCP connection is attached to the connection instead
	// (see logRecord).
	accessLog func() *accesslog.Streams
	outgoing  *loops.Sockets
	guard     *reach.Guard
	share     *budget.Share
	workers   *workerPool
	watch     *watch
	// ends is a context that is cancelled to end all connections of the port, including connections for which the
	// handler is still looking for an endpoint.
	ends context.Context //nolint:containedctx // a connection has no context of its own
	log  *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "layer4.handlers.k8singress", New: func() caddy.Module { return new(Handler) }}
}

// Provision validates the settings and looks up the backends.
func (h *Handler) Provision(ctx caddy.Context) error {
	if err := checkProxyVersion(h.ProxyProtocol); err != nil {
		return fmt.Errorf("proxy_protocol: %w", err)
	}
	if err := check(&h.Policy); err != nil {
		return err
	}
	scope := scopeOf(ctx)
	if !h.Service.IsZero() {
		if err := h.follow(ctx); err != nil || scope == nil {
			return err
		}
		h.use(scope)
		return nil
	}
	if scope == nil {
		return errors.New("the handler needs a Service: set service to a name such as default/db:5432")
	}
	if h.TLS != nil {
		var err error
		if h.secured, err = newSecured(h.TLS, scope.tables.Trust); err != nil {
			return err
		}
	}
	h.backends = scope.tables.Endpoints.Split(h.StreamBackends)
	if err := h.backends.Check(); err != nil {
		return err
	}
	h.use(scope)
	scope.maxConnections = h.Policy.MaxConnections
	return nil
}

// use makes the handler forward connections of the port that the scope belongs to.
func (h *Handler) use(scope *scope) {
	h.log, h.account, h.workers, h.ends = scope.log, scope.account, scope.workers, scope.ends
	h.accessLog = scope.tables.AccessLog
	h.outgoing, h.share, h.guard = scope.outgoing, scope.share, scope.tables.Endpoints.Guard()
	h.watch = &watch{idle: cmp.Or(h.Policy.IdleTimeout, idleTimeout), drain: scope.drain, account: scope.account}
}

func checkProxyVersion(v ir.ProxyVersion) error {
	if !slices.Contains([]ir.ProxyVersion{"", ir.ProxyV1, ir.ProxyV2}, v) {
		return fmt.Errorf("%q is not supported: use v1 or v2", v)
	}
	return nil
}

// check returns an error if one of the numbers in the policy is negative.
func check(p *ir.StreamPolicy) error {
	for name, value := range map[string]int64{
		"idle_timeout": int64(p.IdleTimeout), "connect_timeout": int64(p.ConnectTimeout), "tries": int64(p.Tries),
		"tries_timeout": int64(p.TriesTimeout), "responses": int64(p.Responses),
		"max_connections": int64(p.MaxConnections),
	} {
		if value < 0 {
			return fmt.Errorf("policy: %s must not be negative", name)
		}
	}
	return nil
}

// Handle forwards a connection to an endpoint. It returns when the connection has ended.
func (h *Handler) Handle(cx *layer4.Connection, _ layer4.Handler) error {
	switch {
	case h.guest != nil:
		return h.guest.forward(cx)
	case h.service != nil:
		return h.passToService(cx)
	}
	return h.pass(cx, h.backends.Next())
}

func (h *Handler) pass(cx *layer4.Connection, to *balancer.Backend) error {
	n := recordOf(cx)
	n.setBackend(to)
	a := attempt{handler: h, to: to, client: balancer.Address(netconn.AddrPort(cx.RemoteAddr()))}
	var err error
	if a.greeting, err = greeting(h.ProxyProtocol, cx); err != nil {
		n.setStatus(accesslog.StreamFailed)
		return err
	}
	client, ahead, err := clientOf(cx)
	if err != nil {
		return err
	}
	backend, choice, err := a.dial(h.ends)
	if err != nil {
		n.setStatus(accesslog.StreamNoEndpoint)
		return h.unreachable(cx, to, err)
	}
	defer choice.End()
	defer backend.Close()
	local := netconn.AddrPort(backend.LocalAddr())
	defer h.outgoing.Remove(local)
	l := &link{client: client, backend: sideOf(backend), endpoint: choice.Endpoint}
	// Close both sockets, because closing only the client's socket may have no effect: after the client has sent all of
	// its data, the only running goroutine waits for data from the endpoint.
	defer panics.AfterContext(h.ends, "l4app/link", l.close)()
	h.watch.add(l)
	begin := time.Now()
	err = l.carry(ahead, h.workers)
	h.watch.remove(l)
	n.setTraffic(l)
	h.ended(cx, to, l, time.Since(begin), err)
	return nil
}

// unreachable logs and counts that no endpoint could be reached for a connection. It does nothing if no more endpoints
// were tried because the connection had to end.
func (h *Handler) unreachable(cx *layer4.Connection, to *balancer.Backend, err error) error {
	if h.ends.Err() != nil {
		return nil
	}
	h.account.warn(h.log, noEndpoint, "no endpoint is available for a connection",
		zap.String("backend", to.ID()), zap.Stringer("client", cx.RemoteAddr()), zap.Error(err))
	return nil
}

// ended is called when a forwarded connection has ended. It updates the metrics and logs failures. err is the error
// that ended the connection, or nil.
func (h *Handler) ended(cx *layer4.Connection, to *balancer.Backend, l *link, took time.Duration, err error) {
	switch {
	case errors.Is(err, errIdle):
		h.account.fail(idled)
	case errors.Is(err, errGone):
		h.account.fail(drained)
	case err != nil && h.ends.Err() != nil:
		err = errPortClosed
		h.account.warn(h.log, portClosed,
			"closing a connection: its port was removed and the drain time has passed, or the process is shutting down",
			zap.String("backend", to.ID()), zap.Stringer("client", cx.RemoteAddr()))
	}
	if entry := h.log.Check(zap.DebugLevel, "a connection has ended"); entry != nil {
		entry.Write(zap.String("backend", to.ID()), zap.Stringer("client", cx.RemoteAddr()),
			zap.String("endpoint", l.endpoint.Address()), zap.Duration("duration", took),
			zap.Uint64("bytes_in", l.up.Load()), zap.Uint64("bytes_out", l.down.Load()), zap.Error(err))
	}
}

var (
	_ caddy.Provisioner  = (*Handler)(nil)
	_ layer4.NextHandler = (*Handler)(nil)
)
