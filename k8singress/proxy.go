package k8singress

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/live"
	"github.com/k8singress/k8singress/internal/proxy"
)

func init() { caddy.RegisterModule(new(Proxy)) }

// Proxy sends a request to an endpoint of the backend that its Ingress path names. Ordinary requests go the short way of
// package proxy, on connections that outlive the configuration; upgrades, streams, large bodies and other protocols than
// HTTP/1.1 are left to the handler in ReverseProxy, whose transport and upstreams are those of this project. It works behind
// the k8singress handler only.
type Proxy struct {
	ir.Proxy
	// ReverseProxyRaw is the handler for everything that is not ordinary.
	ReverseProxyRaw json.RawMessage `json:"reverse_proxy,omitempty" caddy:"namespace=http.handlers inline_key=handler"`

	log      *zap.Logger
	settings *proxy.Settings
	fallback caddyhttp.MiddlewareHandler
}

// CaddyModule returns the Caddy module information.
func (*Proxy) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress_proxy", New: func() caddy.Module { return new(Proxy) }}
}

// Provision loads the other handler.
func (p *Proxy) Provision(ctx caddy.Context) error {
	p.log = ctx.Logger()
	var err error
	if p.settings, err = proxy.NewSettings(p.Proxy); err != nil {
		return err
	}
	module, err := ctx.LoadModule(p, "ReverseProxyRaw")
	if err != nil {
		return fmt.Errorf("loading reverse_proxy: %w", err)
	}
	p.fallback = module.(caddyhttp.MiddlewareHandler)
	return nil
}

// ServeHTTP answers with what an endpoint answers.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	request := live.FromContext(r.Context())
	if request == nil {
		return caddyhttp.Error(http.StatusInternalServerError, errNoRequest)
	}
	proxy.DropUpgrade(r)
	x := proxy.NewExchange(p.settings, request)
	defer x.Close()
	if err := x.LimitBody(w, r); err != nil {
		return err
	}
	if err := x.ReadBody(r); err != nil {
		return err
	}
	x.Tell(r, request.Client(), request.ID(), request.ForwardedFor())
	if !x.Ordinary(r) {
		return p.long(w, r, x, next)
	}
	err := request.Connections.Forward(w, r, x)
	if errors.Is(err, proxy.ErrCut) {
		p.abort(w, r, err)
	}
	return err
}

// exchangeVar is the name of the request variable by which Upstreams and Transport find the exchange.
const exchangeVar = "k8singress.exchange"

// long hands a request to reverse_proxy. What an endpoint failed with is known better here than there.
func (p *Proxy) long(w http.ResponseWriter, r *http.Request, x *proxy.Exchange, next caddyhttp.Handler) error {
	if err := x.Secure(r, live.FromContext(r.Context()).Secured()); err != nil {
		return err
	}
	caddyhttp.SetVar(r.Context(), exchangeVar, x)
	if p.settings.StreamRequest {
		w = early(w, r)
	}
	err := settled(w, p.fallback.ServeHTTP(w, r, next))
	if err != nil && x.Failure() != nil {
		return x.Failure()
	}
	return err
}

// abort ends the connection of a client who has got a part of an answer, as net/http's own proxy does.
func (p *Proxy) abort(w http.ResponseWriter, r *http.Request, err error) {
	level := zapcore.WarnLevel
	if r.Context().Err() != nil {
		level = zapcore.DebugLevel
	}
	p.log.Log(level, "an answer is cut off", zap.String("host", r.Host), zap.Error(err))
	_ = http.NewResponseController(w).Flush() // What is there may as well arrive.
	panic(http.ErrAbortHandler)
}

var (
	_ caddy.Provisioner           = (*Proxy)(nil)
	_ caddyhttp.MiddlewareHandler = (*Proxy)(nil)
)
