package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
)

// What ingress-nginx does where nobody says otherwise: proxy-connect-timeout, proxy-next-upstream-tries, proxy-read-timeout
// and proxy-send-timeout, upstream-keepalive-connections and upstream-keepalive-timeout.
const (
	connectTimeout   = 5 * time.Second
	tries            = 3
	silence          = 60 * time.Second
	keepAlivePerHost = 320
	keepAliveTimeout = 60 * time.Second
)

func (r *Renderer) host(h *ir.VirtualHost) part[document.Host] {
	host := &document.Host{Routes: make([]*document.Route, 0, len(h.Routes))}
	for _, route := range h.Routes {
		host.Routes = append(host.Routes, &document.Route{
			Type:    string(route.Match.Type),
			Path:    route.Match.Path,
			Chain:   chain(route),
			Backend: route.Backend.ID,
			Origin:  route.Origin.String(),
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
	handlers = append(handlers, proxy(route.Attempts))
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

// proxy ends every chain.
func proxy(a ir.Attempts) json.RawMessage {
	a = ir.Attempts{
		Connect: cmp.Or(a.Connect, connectTimeout), Read: cmp.Or(a.Read, silence), Write: cmp.Or(a.Write, silence),
		Tries: cmp.Or(a.Tries, tries),
	}
	return mustJSON(struct {
		Handler        string          `json:"handler"`
		ConnectTimeout caddy.Duration  `json:"connect_timeout"`
		ReadTimeout    caddy.Duration  `json:"read_timeout"`
		WriteTimeout   caddy.Duration  `json:"write_timeout"`
		Tries          int             `json:"tries"`
		ReverseProxy   json.RawMessage `json:"reverse_proxy"`
	}{"k8singress_proxy", caddy.Duration(a.Connect), caddy.Duration(a.Read), caddy.Duration(a.Write), a.Tries, reverseProxy(a)})
}

// reverseProxy is for requests that are not ordinary. Its one upstream at a time comes from the picker of the route's
// backend.
func reverseProxy(a ir.Attempts) json.RawMessage {
	handler := reverseproxy.Handler{
		DynamicUpstreamsRaw: json.RawMessage(`{"source":"k8singress"}`),
		LoadBalancing: &reverseproxy.LoadBalancing{
			SelectionPolicyRaw: json.RawMessage(`{"policy":"first"}`),
			Retries:            a.Tries - 1,
		},
		TransportRaw: tagged("protocol", "http", reverseproxy.HTTPTransport{
			Compression: new(bool),
			// An upgraded connection has no limit, an answer that does not begin has.
			ResponseHeaderTimeout: caddy.Duration(a.Read),
			DialTimeout:           caddy.Duration(a.Connect),
			KeepAlive: &reverseproxy.KeepAlive{
				MaxIdleConnsPerHost: keepAlivePerHost,
				IdleConnTimeout:     caddy.Duration(keepAliveTimeout),
			},
		}),
	}
	return tagged("handler", "reverse_proxy", handler)
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
