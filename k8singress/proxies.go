package k8singress

import (
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/process/caddyinternals"
)

// proxiesOf returns the settings of the Caddy server that ctx belongs to about the proxies in front of it. It returns
// nil if the server trusts no proxy, or if ctx does not belong to a server. Otherwise, the ConfigMap of the app gets a
// warning if it also names proxies.
func proxiesOf(ctx caddy.Context, app *App) *realip.Server {
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return nil
	}
	source, err := caddyinternals.TrustedProxies(server)
	if err != nil {
		ctx.Logger().Warn("trusted_proxies has no effect for hosts of Ingresses", zap.String("server", server.Name()),
			zap.Error(err))
	}
	if source == nil && !server.TrustedProxiesUnix {
		return nil
	}
	app.trustsProxies = true
	proxies := &realip.Server{Strict: server.TrustedProxiesStrict > 0, Unix: server.TrustedProxiesUnix}
	switch source := source.(type) {
	case nil:
	case *caddyhttp.StaticIPRange:
		proxies.Fixed = source.GetIPRanges(nil) // It does not use the request.
	default:
		proxies.Networks = source.GetIPRanges
	}
	// Caddy has set the default.
	if !slices.Equal(server.ClientIPHeaders, []string{message.XForwardedFor.Name()}) {
		proxies.Headers = server.ClientIPHeaders
	}
	return proxies
}
