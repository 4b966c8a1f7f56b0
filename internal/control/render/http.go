package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/panics"
)

func (m chains) host(h *ir.VirtualHost) part[document.Host] {
	host := &document.Host{
		AliasOf: h.AliasOf, AliasSince: h.AliasSince, TLS: h.TLS, ClientAuth: h.ClientAuth,
		HTTPSRedirect: h.HTTPSRedirect, Routes: make([]*document.Route, 0, len(h.Routes)),
	}
	if h.AliasBy != (ir.Ref{}) {
		host.AliasBy = h.AliasBy.String()
	}
	if h.OnDemand != (ir.Origin{}) {
		host.OnDemand = h.OnDemand.String()
	}
	for _, route := range h.Routes {
		host.Routes = append(host.Routes, m.route(route))
	}
	if h.Passthrough != nil {
		to := document.StreamsTo(h.Passthrough.Backends)
		host.Passthrough, host.PassthroughSplit = to.Backend, to.Split
	}
	return part[document.Host]{h.Host, host}
}

func (m chains) route(route *ir.Route) *document.Route {
	r := &document.Route{
		Type: string(route.Match.Type), Path: route.Match.Path, Match: route.Match.Conditions,
		Everywhere: route.Match.Everywhere, Within: route.Match.Within,
		Origin: route.Origin.String(), RoutePolicy: route.RoutePolicy,
	}
	filters := route.Filters
	if len(filters) > 0 {
		if redirect, ok := filters[0].(ir.HTTPSRedirect); ok {
			r.HTTPSRedirect, filters = &redirect, filters[1:]
		}
	}
	r.ErrorPages = errorPages(route.ErrorPages, filters)
	if len(route.Backends) == 1 {
		r.Destination = m.destination(route, filters, &route.Backends[0])
		return r
	}
	for i := range route.Backends {
		b := &route.Backends[i]
		share := &document.Share{Destination: m.destination(route, filters, b), Weight: b.Weight, Fallback: b.Fallback}
		if b.Canary != (ir.Origin{}) {
			share.Canary = b.Canary.String()
		}
		r.Split = append(r.Split, share)
	}
	return r
}

// errorPages renders the error pages of a route with the given filters.
func errorPages(of *ir.ErrorPages, filters []ir.Filter) *document.ErrorPages {
	if of == nil {
		return nil
	}
	pages := &document.ErrorPages{ErrorPages: ir.ErrorPages{Statuses: of.Statuses, OwnOnly: of.OwnOnly},
		AfterDefaultChains: slices.ContainsFunc(filters, func(f ir.Filter) bool {
			_, ok := f.(ir.DefaultChains)
			return ok
		})}
	if of.Backend != nil {
		pages.Backend = of.Backend.ID
	}
	return pages
}

// destination renders one destination of a route, which is a backend with its handler chain. If rendering panics, it
// returns a destination that rejects all requests. If the destination were omitted, the requests would match another
// route, which may lack access control.
func (m chains) destination(route *ir.Route, filters []ir.Filter, b *ir.WeightedBackend) (d document.Destination) {
	if len(b.Filters) > 0 {
		filters = slices.Concat(filters, b.Filters)
	}
	filters = ir.WithAuthHeaders(filters)
	if caught := panics.Try(func() {
		d.Backend, d.TLS, d.Users = b.Backend.ID, route.Proxy.TLS, ir.UsersOf(filters)
		made := m.of(filters, route.Proxy)
		d.Chain, d.Access = made.json, made.access
		if ir.GuardsByRoute(filters) {
			// Include the route in the hash, because these access control filters accept different clients on different
			// routes even if their settings are the same.
			of := []string{made.access, route.Origin.String(), route.Match.Path, b.Backend.ID}
			d.Access = digest([]json.RawMessage{document.Encode(of)})
		}
	}); caught != nil {
		d.Chain, d.TLS, d.Users, d.Access, d.Refused = nil, nil, nil, "",
			fmt.Sprintf("the handler chain cannot be rendered: %v", caught)
	}
	return d
}

// chain renders a handler chain, and returns it with a hash of its access control filters. The result does not depend
// on the host, the path or the endpoints, so that routes with the same settings share it.
func chain(filters []ir.Filter, proxy ir.Proxy) (whole json.RawMessage, access string) {
	var handlers, guards []json.RawMessage
	for _, f := range filters {
		next := handler(f)
		handlers = append(handlers, next)
		if f.Guards() != ir.NoRequests {
			guards = append(guards, next)
		}
	}
	handlers = append(handlers, proxyHandler(proxy))
	return document.Encode(caddyhttp.RouteList{{HandlersRaw: handlers}}), digest(guards)
}

// digest returns a hash of the JSON of the given access control handlers, or "" if there are no handlers.
func digest(guards []json.RawMessage) string {
	if guards == nil {
		return ""
	}
	sum := sha256.Sum256(document.Encode(guards))
	return hex.EncodeToString(sum[:16])
}

// handler returns the JSON of the Caddy handler that implements a filter.
func handler(f ir.Filter) json.RawMessage {
	name := filter.HandlerName(f)
	if list, ok := f.(ir.AnyOf); ok {
		return document.EncodeModule("handler", name, anyOf(list))
	}
	return document.EncodeModule("handler", name, f)
}

func anyOf(f ir.AnyOf) document.AnyOf {
	var of document.AnyOf
	for _, one := range f.Filters {
		of.Filters = append(of.Filters, handler(one))
	}
	return of
}
