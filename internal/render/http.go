package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
)

func (m chains) host(h *ir.VirtualHost) part[document.Host] {
	host := &document.Host{TLS: h.TLS, Routes: make([]*document.Route, 0, len(h.Routes))}
	for _, route := range h.Routes {
		host.Routes = append(host.Routes, m.route(route))
	}
	host.ClientAuth = clientAuth(h.ClientAuth)
	if h.Passthrough != nil {
		host.Passthrough = h.Passthrough.ID
	}
	return part[document.Host]{h.Host, host}
}

func clientAuth(a *ir.ClientAuth) *document.ClientAuth {
	if a == nil {
		return nil
	}
	d := &document.ClientAuth{
		Verify: string(a.Verify), Depth: a.Depth, ErrorPage: a.ErrorPage, PassCertificate: a.PassCertificate,
		Subject: a.Subject, Closed: a.Closed, Origin: a.Origin.String(),
	}
	if a.SecretName != "" {
		d.Secret = a.SecretNamespace + "/" + a.SecretName
	}
	return d
}

// route makes a panic a refusal of the route that caused it. Without the route its requests would go to another one, which
// may let in everybody.
func (m chains) route(route *ir.Route) (r *document.Route) {
	r = &document.Route{
		Type: string(route.Match.Type), Path: route.Match.Path, Origin: route.Origin.String(), HTTPSRedirect: route.HTTPSRedirect,
	}
	defer func() {
		if p := recover(); p != nil {
			r.Chain, r.TLS, r.Access, r.Refused = nil, nil, "", fmt.Sprintf("what they should meet cannot be rendered: %v", p)
		}
	}()
	r.Backend, r.TLS = route.Backend.ID, route.Proxy.TLS
	made := m.of(route)
	r.Chain, r.Access = made.json, made.access
	return r
}

// chain holds nothing of the host, the path or the endpoints, so that routes which do the same share one chain.
func chain(route *ir.Route) (whole json.RawMessage, access string) {
	var handlers, guards []json.RawMessage
	for _, f := range route.Filters {
		handler := filter(f)
		handlers = append(handlers, handler)
		if guard(f) {
			guards = append(guards, handler)
		}
	}
	handlers = append(handlers, proxyHandler(route.Proxy))
	return mustJSON(caddyhttp.RouteList{{HandlersRaw: handlers}}), digest(guards)
}

// guard says whether a filter may keep requests from the backend. One that nobody has thought of does.
func guard(f ir.Filter) bool {
	_, rewrites := f.(ir.URLRewrite)
	return !rewrites
}

// digest is empty for no guards.
func digest(guards []json.RawMessage) string {
	if guards == nil {
		return ""
	}
	sum := sha256.Sum256(mustJSON(guards))
	return hex.EncodeToString(sum[:16])
}

func filter(f ir.Filter) json.RawMessage {
	switch f := f.(type) {
	case ir.URLRewrite:
		return mustJSON(struct {
			Handler string `json:"handler"`
			Target  string `json:"target"`
		}{"k8singress_rewrite", f.Target})
	case ir.HandlerChain:
		return mustJSON(struct {
			Handler string `json:"handler"`
			Name    string `json:"name"`
		}{"k8singress_chain", f.Name})
	case ir.DirectResponse:
		return mustJSON(struct {
			Handler string `json:"handler"`
			Status  int    `json:"status_code"`
		}{"static_response", f.Status})
	}
	panic(fmt.Sprintf("no rendering of filter %T", f))
}

// tagged is the JSON of a module with its name in it, as Caddy reads modules.
func tagged(key, name string, module any) json.RawMessage {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(mustJSON(module), &fields); err != nil {
		panic(err)
	}
	fields[key] = mustJSON(name)
	return mustJSON(fields)
}

// mustJSON panics for what cannot be JSON, which is a programming error: everything here is made of strings and numbers.
func mustJSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
