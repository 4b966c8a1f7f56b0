package live

import (
	"net/netip"
	"slices"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// Load balancers and monitoring systems request HealthPath and StatusPath. The controller serves both paths on hosts
// without an Ingress, like ingress-nginx.
const (
	HealthPath = "/healthz"
	StatusPath = "/nginx_status"
)

// probes are the routes for HealthPath and StatusPath. Requests for them are not written to the access log.
var probes = map[string]*exchange.Route{
	HealthPath: {Path: HealthPath, Type: "exact", RoutePolicy: ir.RoutePolicy{Unlogged: true}},
	StatusPath: {Path: StatusPath, Type: "exact", RoutePolicy: ir.RoutePolicy{Unlogged: true}},
}

// isProbe reports whether a request is for HealthPath or StatusPath on an unknown host, so that the controller must
// answer it itself. As in nginx, an Ingress without a host takes precedence if its path is a regular expression or
// longer than "/".
func (t *Table) isProbe(x *exchange.Exchange, index *index, h *host, route *Route, path string) bool {
	if h != nil && h != index.fallback || x.PassesOn || x.Conn.Listener != ServerPorts || probes[path] == nil {
		return false
	}
	if route != nil && (route.Regex != nil || len(route.Path) > 1) {
		return false
	}
	x.Route = probes[path]
	return true
}

// statusReaders holds the networks whose clients may read the status page.
type statusReaders []netip.Prefix

func newStatusReaders(of *ir.StatusPage) (all statusReaders) {
	for list, otherwise := range map[*[]string]string{&of.IPv4: "127.0.0.1/32", &of.IPv6: "::1/128"} {
		networks := *list
		if networks == nil {
			networks = []string{otherwise}
		}
		for _, text := range networks {
			if network, err := netip.ParsePrefix(text); err == nil {
				all = append(all, network)
			}
		}
	}
	return all
}

// ReadsStatus reports whether the client of a request may read the status page.
func (t *Table) ReadsStatus(x *exchange.Exchange) bool {
	ip, err := netip.ParseAddr(x.Client().IP)
	ip = ip.Unmap().WithZone("")
	return err == nil && slices.ContainsFunc(*t.global.status.Load(),
		func(network netip.Prefix) bool { return network.Contains(ip) })
}
