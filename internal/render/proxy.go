package render

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
)

// What ingress-nginx does where nobody says otherwise: proxy-connect-timeout, proxy-read-timeout and proxy-send-timeout,
// proxy-next-upstream-tries, proxy-next-upstream and proxy-body-size.
const (
	connectTimeout = 5 * time.Second
	silence        = 60 * time.Second
	tries          = 3
	maxBody        = 1 << 20
)

var retryOn = []ir.RetryOn{ir.RetryOnError, ir.RetryOnTimeout}

// proxyHandler ends every chain.
func proxyHandler(route *ir.Route) json.RawMessage {
	a, f := route.Attempts, route.Forwarding
	if a.On == nil {
		a.On = retryOn
	}
	limit := cmp.Or(f.MaxBody, maxBody)
	if limit == ir.NoLimit {
		limit = 0
	}
	return mustJSON(struct {
		Handler string `json:"handler"`
		document.Proxy
		ReverseProxy json.RawMessage `json:"reverse_proxy"`
	}{
		"k8singress_proxy",
		document.Proxy{
			ConnectTimeout: cmp.Or(a.Connect, connectTimeout),
			ReadTimeout:    cmp.Or(a.Read, silence),
			WriteTimeout:   cmp.Or(a.Write, silence),
			Tries:          cmp.Or(a.Tries, tries), RetryTimeout: a.Total, RetryOn: a.On,
			Protocol: f.Protocol, Host: f.Host, Connection: f.Connection, MaxBody: limit,
			StreamRequest: f.StreamRequest, BufferResponse: f.BufferResponse, Prefix: f.Prefix, Index: f.Index, Params: route.Params,
		},
		reverseProxy(cmp.Or(a.Tries, tries)),
	})
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
	return tagged("handler", "reverse_proxy", handler)
}

// never matches no request: reverse_proxy would repeat each GET by itself.
var never = caddyhttp.RawMatcherSets{{"not": json.RawMessage(`[{}]`)}}
