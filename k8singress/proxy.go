package k8singress

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/k8singress/k8singress/internal/live"
	"github.com/k8singress/k8singress/internal/proxy"
)

func init() { caddy.RegisterModule(new(Proxy)) }

// Proxy sends a request to an endpoint of the backend that its Ingress path names. Ordinary requests go the short way of
// package proxy, on connections that outlive the configuration; upgrades, streams and large bodies are left to the handler
// in ReverseProxy. It works behind the k8singress handler only.
type Proxy struct {
	// ConnectTimeout is for a new connection; ReadTimeout and WriteTimeout end a connection on which nothing moves.
	ConnectTimeout caddy.Duration `json:"connect_timeout,omitempty"`
	ReadTimeout    caddy.Duration `json:"read_timeout,omitempty"`
	WriteTimeout   caddy.Duration `json:"write_timeout,omitempty"`
	// Tries is how many endpoints are asked at most.
	Tries int `json:"tries,omitempty"`
	// ReverseProxyRaw is the handler for everything that is not ordinary.
	ReverseProxyRaw json.RawMessage `json:"reverse_proxy,omitempty" caddy:"namespace=http.handlers inline_key=handler"`

	log      *zap.Logger
	settings proxy.Settings
	fallback caddyhttp.MiddlewareHandler
}

// CaddyModule returns the Caddy module information.
func (*Proxy) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress_proxy", New: func() caddy.Module { return new(Proxy) }}
}

// Provision loads the other handler.
func (p *Proxy) Provision(ctx caddy.Context) error {
	p.log = ctx.Logger()
	p.settings = proxy.Settings{
		Connect: time.Duration(p.ConnectTimeout), Read: time.Duration(p.ReadTimeout), Write: time.Duration(p.WriteTimeout),
		Tries: max(p.Tries, 1),
	}
	if p.settings.Connect <= 0 || p.settings.Read <= 0 || p.settings.Write <= 0 {
		return errors.New("connect_timeout, read_timeout and write_timeout are above zero")
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
	if !proxy.Ordinary(r) {
		return p.fallback.ServeHTTP(w, r, next)
	}
	request := live.FromContext(r.Context())
	if request == nil {
		return caddyhttp.Error(http.StatusInternalServerError, errNoRequest)
	}
	err := request.Connections.Forward(w, r, &p.settings, request.Pick)
	if errors.Is(err, proxy.ErrCut) {
		p.abort(w, r, err)
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
