package render

import (
	"encoding/json"
	"fmt"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
)

func (m chains) host(h *ir.VirtualHost) part[document.Host] {
	host := &document.Host{TLS: h.TLS, Routes: make([]*document.Route, 0, len(h.Routes))}
	for _, route := range h.Routes {
		host.Routes = append(host.Routes, &document.Route{
			Type:    string(route.Match.Type),
			Path:    route.Match.Path,
			Chain:   m.of(route),
			Backend: route.Backend.ID,
			Origin:  route.Origin.String(),

			HTTPSRedirect: route.HTTPSRedirect,
		})
	}
	return part[document.Host]{h.Host, host}
}

// chain holds nothing of the host, the path or the endpoints, so that routes which do the same share one chain.
func chain(route *ir.Route) json.RawMessage {
	var handlers []json.RawMessage
	for _, f := range route.Filters {
		handlers = append(handlers, filter(f))
	}
	handlers = append(handlers, proxy(route))
	return mustJSON(caddyhttp.RouteList{{HandlersRaw: handlers}})
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
