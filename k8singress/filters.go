package k8singress

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/model/ir"
)

func init() { caddy.RegisterModule(new(Proxy)) }

var errNoRequest = errors.New("the request did not come through the k8singress handler")

// filterModule is the common part of the Caddy handlers that run a filter of package filter, so that the handler chain
// of an Ingress path is valid Caddy JSON. Usually the filters of a chain run without these handlers, which are only
// needed for a filter inside another Caddy handler, such as a subroute.
type filterModule struct {
	filter filter.Filter
}

// provision creates the filter from its settings.
func (m *filterModule) provision(ctx caddy.Context, settings any) (err error) {
	m.filter, err = filter.Create(settings, live.SharedFrom(ctx))
	return err
}

// ServeHTTP applies the filter to the request. If the filter does not respond, it calls next.
func (m *filterModule) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	visit := live.ChainRunFrom(r.Context())
	if visit == nil {
		return caddyhttp.Error(http.StatusInternalServerError, errNoRequest)
	}
	return visit.Apply(m.filter, w, r, next)
}

// Proxy is a Caddy handler that forwards a request to an endpoint of the matching Ingress path's backend. Connections
// to endpoints survive configuration reloads. It only works behind the k8singress handler.
type Proxy struct {
	ir.Proxy

	settings *proxy.Settings
}

// CaddyModule returns the Caddy module information.
func (*Proxy) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress_proxy", New: func() caddy.Module { return new(Proxy) }}
}

// Provision validates the settings.
func (p *Proxy) Provision(caddy.Context) (err error) {
	p.settings, err = proxy.NewSettings(p.Proxy)
	return err
}

// ServeHTTP forwards the request and writes the endpoint's response.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	visit := live.ChainRunFrom(r.Context())
	if visit == nil {
		return caddyhttp.Error(http.StatusInternalServerError, errNoRequest)
	}
	return visit.Forward(p.settings, w, r)
}

var (
	_ caddyhttp.MiddlewareHandler = (*filterModule)(nil)
	_ caddy.Provisioner           = (*Proxy)(nil)
	_ caddyhttp.MiddlewareHandler = (*Proxy)(nil)
)
