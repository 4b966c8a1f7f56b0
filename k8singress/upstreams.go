package k8singress

import (
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/ownapp"
	"github.com/k8singress/k8singress/internal/upstream/services"
)

func init() { caddy.RegisterModule(new(Upstreams)) }

// Upstreams provides the endpoints of a Kubernetes Service as upstreams of Caddy's reverse_proxy handler. Changed
// endpoints take effect with the next request, without a reload. No Ingress needs to refer to the Service.
//
// The upstreams are the ready endpoints, or, if there are none, the endpoints that are terminating but still serving.
// If the Service has no such endpoints, or does not exist, the handler uses its static upstreams. Without static
// upstreams, it responds with 503. The same happens if the Kubernetes objects are not read within five seconds.
type Upstreams struct {
	// Service is the Service and its port, in the form `namespace/name:port`. The port is a number or a name. Without
	// `:port`, it is the first port of the Service.
	Service string `json:"service"`

	service *services.Service
}

// CaddyModule returns the Caddy module information.
func (*Upstreams) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID: "http.reverse_proxy.upstreams.k8singress", New: func() caddy.Module { return new(Upstreams) },
	}
}

// UnmarshalCaddyfile parses
//
//	dynamic k8singress <namespace>/<service>[:<port>]
func (u *Upstreams) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&u.Service) {
		return d.Err("dynamic k8singress takes exactly one argument, a Service such as default/shop:80")
	}
	if _, err := ir.ParseServicePort(u.Service); err != nil {
		return d.Errf("dynamic k8singress: the Service %v", err)
	}
	if d.NextBlock(0) {
		return d.Errf("dynamic k8singress has no options; found %q", d.Val())
	}
	return nil
}

// Provision makes the running k8singress app keep the endpoints of the Service up to date.
func (u *Upstreams) Provision(ctx caddy.Context) error {
	port, err := ir.ParseServicePort(u.Service)
	if err != nil {
		return fmt.Errorf("service: %w", err)
	}
	app, err := ownapp.ForService[*App](ctx, port)
	if err != nil {
		return err
	}
	if err := app.CheckChains(ctx); err != nil {
		return err
	}
	u.service = app.Services().Follow(ir.FollowedPort{ServicePort: port, Protocol: ir.TCP})
	return nil
}

// GetUpstreams returns the current endpoints of the Service. It returns an error if there are none.
func (u *Upstreams) GetUpstreams(r *http.Request) ([]*reverseproxy.Upstream, error) {
	endpoints, err := u.service.Endpoints(r.Context())
	if err != nil {
		return nil, err
	}
	// The handler changes the upstreams, so they cannot be shared between requests.
	upstreams, pointers := make([]reverseproxy.Upstream, len(endpoints)), make([]*reverseproxy.Upstream, len(endpoints))
	for i := range endpoints {
		upstreams[i].Dial = endpoints[i].Address
		pointers[i] = &upstreams[i]
	}
	return pointers, nil
}

// Cleanup ends the use of the Service.
func (u *Upstreams) Cleanup() error {
	if u.service != nil {
		u.service.Close()
	}
	return nil
}

var (
	_ caddy.Provisioner           = (*Upstreams)(nil)
	_ caddy.CleanerUpper          = (*Upstreams)(nil)
	_ caddyfile.Unmarshaler       = (*Upstreams)(nil)
	_ reverseproxy.UpstreamSource = (*Upstreams)(nil)
)
