package k8singress

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/live"
)

func init() { caddy.RegisterModule(new(Redirect)) }

// Redirect answers with the way to another URL, as the RequestRedirect filter of Gateway API does. All of its fields are data.
type Redirect struct{ ir.Redirect }

// CaddyModule returns the Caddy module information.
func (*Redirect) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress_redirect", New: func() caddy.Module { return new(Redirect) }}
}

// Provision refuses a status that is no redirect.
func (h *Redirect) Provision(caddy.Context) error {
	if h.Status < 300 || h.Status > 399 {
		return errors.New("status_code is not one from 300 to 399")
	}
	return nil
}

// ServeHTTP writes the Location.
func (h *Redirect) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	request := live.FromContext(r.Context())
	if request == nil {
		return errNoRequest
	}
	to, path := &url.URL{RawQuery: r.URL.RawQuery}, live.CleanPath(r.URL.Path)
	switch {
	case h.Target != "":
		to.Path = withTarget(h.Target, path, request.Route.Submatch(path))
	case h.Prefix != "":
		to.Path = withPrefix(h.Prefix, request.Route, path)
	default:
		to.Path, to.RawPath = rooted(r.URL.Path), r.URL.RawPath
	}
	client := request.Client()
	to.Scheme = cmp.Or(h.Scheme, client.Proto)
	to.Host = cmp.Or(h.Host, client.Hostname())
	port := client.Port
	if h.Scheme != "" {
		port = ""
	}
	if h.Port != 0 {
		port = strconv.Itoa(h.Port)
	}
	if port != "" && port != defaultPorts[to.Scheme] {
		to.Host += ":" + port
	}
	w.Header()["Location"] = []string{to.String()}
	w.WriteHeader(h.Status)
	return nil
}

// defaultPorts are those that a URL leaves out.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

var (
	_ caddy.Provisioner           = (*Redirect)(nil)
	_ caddyhttp.MiddlewareHandler = (*Redirect)(nil)
)
