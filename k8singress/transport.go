package k8singress

import (
	"encoding/json"
	"fmt"
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
type Transport struct {
	// InnerRaw is the transport for a protocol that is neither HTTP nor gRPC.
	InnerRaw json.RawMessage `json:"inner,omitempty" caddy:"namespace=http.reverse_proxy.transport inline_key=protocol"`

	inner http.RoundTripper
}

// CaddyModule returns the Caddy module information.
func (*Transport) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.reverse_proxy.transport.k8singress", New: func() caddy.Module { return new(Transport) }}
}

// Provision loads the inner transport.
func (t *Transport) Provision(ctx caddy.Context) error {
	if len(t.InnerRaw) == 0 {
		return nil
	}
	module, err := ctx.LoadModule(t, "InnerRaw")
	if err != nil {
		return fmt.Errorf("loading the inner transport: %w", err)
	}
	t.inner = module.(http.RoundTripper)
	return nil
}

// RoundTrip sends one request to one endpoint.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	x, _ := caddyhttp.GetVar(r.Context(), exchangeVar).(*proxy.Exchange)
	request := live.FromContext(r.Context())
	if x == nil || request == nil {
		return nil, errNoRequest
	}
	response, err := request.Connections.RoundTrip(r, x, t.inner)
	if err == nil && request.Has(strictTransport) {
		response.Header.Del(strictTransport)
	}
	return response, err
}

var (
	_ caddy.Provisioner = (*Transport)(nil)
	_ http.RoundTripper = (*Transport)(nil)
)
