package k8singress

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/filter"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/live"
	"github.com/k8singress/k8singress/internal/proxy"
)

func init() {
	for _, name := range filter.Names() {
		caddy.RegisterModule(&Filter{name: name})
	}
	caddy.RegisterModule(new(Proxy))
}

var errNoRequest = errors.New("the request did not come through the k8singress handler")

// Filter is a filter of an Ingress path as Caddy has handlers, so that a document is Caddy JSON. It works behind the k8singress
// handler only. There it is a Caddy handler only where others stand around it, such as a subroute: table entries serve the filter
// itself.
type Filter struct {
	name   string
	raw    json.RawMessage
	filter filter.Filter
}

// CaddyModule returns the Caddy module information.
func (f *Filter) CaddyModule() caddy.ModuleInfo {
	name := f.name
	return caddy.ModuleInfo{ID: caddy.ModuleID("http.handlers." + name), New: func() caddy.Module { return &Filter{name: name} }}
}

// UnmarshalJSON keeps the settings for Provision.
func (f *Filter) UnmarshalJSON(raw []byte) error {
	f.raw = append(json.RawMessage(nil), raw...)
	return nil
}

// Provision makes the filter.
func (f *Filter) Provision(ctx caddy.Context) (err error) {
	f.filter, _, err = filter.New(f.name, f.raw, live.SharedFrom(ctx))
	return err
}

// ServeHTTP lets the request through the filter.
func (f *Filter) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	visit := live.VisitFrom(r.Context())
	if visit == nil {
		return caddyhttp.Error(http.StatusInternalServerError, errNoRequest)
	}
	return visit.Apply(f.filter, w, r, next)
}

// Proxy sends a request to an endpoint of the backend that its Ingress path names, on connections that outlive the configuration. It
// works behind the k8singress handler only.
type Proxy struct {
	ir.Proxy

	settings *proxy.Settings
}

// CaddyModule returns the Caddy module information.
func (*Proxy) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress_proxy", New: func() caddy.Module { return new(Proxy) }}
}

// Provision checks the settings.
func (p *Proxy) Provision(caddy.Context) (err error) {
	p.settings, err = proxy.NewSettings(p.Proxy)
	return err
}

// ServeHTTP answers with what an endpoint answers.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	visit := live.VisitFrom(r.Context())
	if visit == nil {
		return caddyhttp.Error(http.StatusInternalServerError, errNoRequest)
	}
	return visit.Forward(p.settings, w, r)
}

var (
	_ caddy.Provisioner           = (*Filter)(nil)
	_ caddyhttp.MiddlewareHandler = (*Filter)(nil)
	_ caddy.Provisioner           = (*Proxy)(nil)
	_ caddyhttp.MiddlewareHandler = (*Proxy)(nil)
)
