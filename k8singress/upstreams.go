package k8singress

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/k8singress/k8singress/internal/proxy"
)

func init() { caddy.RegisterModule(new(Upstreams)) }

// Upstreams hands reverse_proxy one endpoint of the backend that the request's Ingress path names: the one that load
// balancing picked. A retry gets another one. It works behind the k8singress handler only.
type Upstreams struct{}

// CaddyModule returns the Caddy module information.
func (*Upstreams) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.reverse_proxy.upstreams.k8singress", New: func() caddy.Module { return new(Upstreams) }}
}

var errNoRequest = errors.New("the request did not come through the k8singress handler")

// GetUpstreams returns one upstream, or none when the backend has no endpoints; reverse_proxy answers 503 then.
func (*Upstreams) GetUpstreams(r *http.Request) ([]*reverseproxy.Upstream, error) {
	x, _ := caddyhttp.GetVar(r.Context(), exchangeVar).(*proxy.Exchange)
	if x == nil {
		return nil, errNoRequest
	}
	address, ok := x.Next()
	if !ok {
		return nil, nil
	}
	return []*reverseproxy.Upstream{{Dial: address}}, nil
}

var _ reverseproxy.UpstreamSource = (*Upstreams)(nil)
