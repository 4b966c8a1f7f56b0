package render

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
)

// proxyHandler ends every chain.
func proxyHandler(p ir.Proxy) json.RawMessage {
	p = p.WithDefaults()
	return document.Encode(struct {
		Handler string `json:"handler"`
		ir.Proxy
		ReverseProxy json.RawMessage `json:"reverse_proxy"`
	}{"k8singress_proxy", p, reverseProxy(p.Tries)})
}

// reverseProxy is for requests that are not ordinary. Its one upstream at a time comes from the picker of the route's
// backend, and its transport decides whether another one follows.
func reverseProxy(tries int) json.RawMessage {
	handler := reverseproxy.Handler{
		DynamicUpstreamsRaw: json.RawMessage(`{"source":"k8singress"}`),
		LoadBalancing: &reverseproxy.LoadBalancing{
			SelectionPolicyRaw: json.RawMessage(`{"policy":"first"}`),
			Retries:            tries - 1,
		},
		TransportRaw: json.RawMessage(`{"protocol":"k8singress"}`),
	}
	if handler.LoadBalancing.Retries > 0 {
		handler.LoadBalancing.RetryMatchRaw = never
	}
	return document.EncodeModule("handler", "reverse_proxy", handler)
}

// never matches no request: reverse_proxy would repeat each GET by itself.
var never = caddyhttp.RawMatcherSets{{"not": json.RawMessage(`[{}]`)}}
