package l4app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/mholt/caddy-l4/layer4"
	"github.com/pires/go-proxyproto"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/endpoints"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/variables"
)

func init() { caddy.RegisterModule(new(Handler)) }

const (
	// dialTimeout is how long one endpoint has to accept: ingress-nginx's proxy-connect-timeout, which is for HTTP. It has
	// none for streams, where nginx's own 60 seconds count, which is longer than most clients wait for three endpoints.
	dialTimeout = 5 * time.Second
	// dialTries is how many endpoints are asked: ingress-nginx's proxy-stream-next-upstream-tries.
	dialTries = 3
)

// Handler passes a connection, or the datagrams of a client, to an endpoint of a backend. It is the last handler of a
// port that a Kubernetes object asks for. When an endpoint does not answer, another one is asked; at most three are.
type Handler struct {
	// Backend is the ID of the backend: "namespace/service/port".
	Backend string `json:"backend"`
	// ProxyProtocol is "v1" to send the endpoint the address of the client in a PROXY protocol header first. It is for
	// TCP. Default: none is sent.
	ProxyProtocol string `json:"proxy_protocol,omitempty"`
	// Policy has the timeouts and limits.
	Policy ir.StreamPolicy `json:"policy,omitzero"`

	backend *balancer.Backend
	log     *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "layer4.handlers.k8singress", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the endpoints.
func (h *Handler) Provision(ctx caddy.Context) error {
	table := endpoints.FromContext(ctx)
	if table == nil {
		return errors.New("this handler works on ports that the ingress controller opens: list them in the ConfigMap of tcp_services or udp_services")
	}
	if h.ProxyProtocol != "" && h.ProxyProtocol != string(ir.ProxyV1) {
		return fmt.Errorf("proxy_protocol %q: there is v1 only", h.ProxyProtocol)
	}
	h.backend = table.Backend(h.Backend)
	h.log = ctx.Logger()
	return nil
}

// Handle serves a connection until it ends.
func (h *Handler) Handle(cx *layer4.Connection, _ layer4.Handler) error {
	backend, choice, err := h.dial(cx.Context, strings.TrimRight(cx.LocalAddr().Network(), "46"), cx.RemoteAddr())
	if err != nil {
		h.log.Warn("no endpoint for a connection", zap.String("backend", h.Backend), zap.Stringer("client", cx.RemoteAddr()), zap.Error(err))
		return err
	}
	defer choice.End()
	defer backend.Close()
	tcp, ok := backend.(*net.TCPConn)
	if !ok {
		return errors.New("datagrams come to this handler on ports that the ingress controller opens")
	}
	if h.ProxyProtocol == string(ir.ProxyV1) {
		header := proxyproto.HeaderProxyFromAddrs(1, cx.RemoteAddr(), cx.LocalAddr())
		if _, err := header.WriteTo(tcp); err != nil {
			return fmt.Errorf("sending the PROXY protocol header: %w", err)
		}
	}
	return relay(cx, tcp)
}

var errNoEndpoint = errors.New("there is no endpoint that is ready")

// dial connects to an endpoint. The choice that it returns is under way.
func (h *Handler) dial(ctx context.Context, network string, client net.Addr) (net.Conn, balancer.Choice, error) {
	err := errNoEndpoint
	var tried []*balancer.Endpoint
	for range dialTries {
		choice, ok := h.backend.Pick(asker{client}, tried)
		if !ok || slices.Contains(tried, choice.Endpoint) {
			break
		}
		tried = append(tried, choice.Endpoint)
		var conn net.Conn
		if conn, err = attempt(ctx, network, choice); err == nil {
			return conn, choice, nil
		}
	}
	return nil, balancer.Choice{}, err
}

// attempt connects to one endpoint. What counts as its latency is the time until it accepts: a connection lasts as long as
// the client likes.
func attempt(ctx context.Context, network string, choice balancer.Choice) (net.Conn, error) {
	dialer, begin := net.Dialer{Timeout: dialTimeout}, time.Now()
	choice.Begin()
	conn, err := dialer.DialContext(ctx, network, choice.Endpoint.Address())
	if err == nil || ctx.Err() == nil {
		choice.Observe(time.Since(begin), err != nil)
	}
	if err != nil {
		choice.End()
	}
	return conn, err
}

// asker is what load balancing may know of a connection: where it comes from.
type asker struct{ client net.Addr }

func (asker) Hash(*variables.Template) string { return "" }

func (asker) Cookie(string) string { return "" }

func (a asker) ClientIP() string {
	address, err := netip.ParseAddrPort(a.client.String())
	if err != nil {
		return ""
	}
	return address.Addr().Unmap().String()
}

var (
	_ caddy.Provisioner  = (*Handler)(nil)
	_ layer4.NextHandler = (*Handler)(nil)
)
