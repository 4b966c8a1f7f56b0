package k8singress

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/live"
	"github.com/k8singress/k8singress/internal/proxy"
)

func init() { caddy.RegisterModule(new(Transport)) }

// Transport carries the requests of reverse_proxy to the endpoints of an Ingress path: with the headers that ingress-nginx
// sends, on connections that all routes share and that outlive the configuration, and with time limits for silence. It
// works inside of a k8singress_proxy handler only.
type Transport struct{}

// CaddyModule returns the Caddy module information.
func (*Transport) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.reverse_proxy.transport.k8singress", New: func() caddy.Module { return new(Transport) }}
}

// RoundTrip sends one request to one endpoint.
func (*Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	x, _ := caddyhttp.GetVar(r.Context(), exchangeVar).(*proxy.Exchange)
	request := live.FromContext(r.Context())
	if x == nil || request == nil {
		return nil, errNoRequest
	}
	response, err := request.Connections.RoundTrip(r, x)
	if err == nil && request.Has(strictTransport) {
		response.Header.Del(strictTransport)
	}
	return response, err
}

var _ http.RoundTripper = (*Transport)(nil)
