package configmap

import (
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

const booleans = "true or false"

// The ConfigMap keys that determine the address of a client.
var (
	useForwardedHeaders = Key{
		Name: "use-forwarded-headers", Scope: process,
		Doc: "Trusts the X-Forwarded-* headers of requests from the networks in proxy-real-ip-cidr, and forwards " +
			"these headers to endpoints. With `false`, endpoints get only the X-Forwarded-* headers that the " +
			"controller sets. Set use-forwarded-headers to `true` only if another proxy in front of the controller " +
			"sets these headers.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Clients.UseForwarded }, nginx.Bool),
		Check: func(c *Config) string { return trustsEveryone(c, c.Global.Clients.UseForwarded) },
	}
	computeFullForwardedFor = Key{
		Name: "compute-full-forwarded-for", Scope: process,
		Doc: "Appends the address of the peer (the client or the proxy that opened the connection) to the " +
			"X-Forwarded-For header that a trusted peer sent. With `false`, the header to the endpoint contains only " +
			"the client's address. This key requires use-forwarded-headers.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Clients.AppendForwarded }, nginx.Bool),
	}
	forwardedForHeader = Key{
		Name: "forwarded-for-header", Scope: process,
		Doc: "The request header that contains the client's address. The header is used if use-forwarded-headers or " +
			"enable-real-ip is `true`.",
		Values: "the name of a header", Example: "CF-Connecting-IP", Default: "X-Forwarded-For",
		Parse: nginx.Into(func(c *Config) *string { return &c.Global.Clients.Header }, nginx.Token),
	}
	enableRealIP = Key{
		Name: "enable-real-ip", Scope: process,
		Doc: "Reads the client's address from the header in forwarded-for-header if the request comes from a network " +
			"in proxy-real-ip-cidr. The other X-Forwarded-* headers are not trusted.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Clients.RealIP }, nginx.Bool),
		Check: func(c *Config) string { return trustsEveryone(c, c.Global.Clients.RealIP) },
	}
	proxyRealIPCIDR = Key{
		Name: "proxy-real-ip-cidr", Scope: process,
		Doc: "The networks of the trusted proxies in front of the controller. Always set this key: with the default, " +
			"every client can claim any address. If no network in the list is valid, no proxy is trusted.\n\n" +
			"The controller trusts the X-Forwarded-* and PROXY protocol headers from these networks. Trusted proxies " +
			"may open any number of connections, while the number of connections from each other address is limited.",
		Values: "comma-separated networks and addresses", Example: "10.0.0.0/8,fd00::/8",
		Default: "all addresses",
		Parse:   nginx.Into(func(c *Config) *[]string { return &c.Global.Clients.Trusted }, nginx.Networks),
		Lines:   true,
	}
	useProxyProtocol = Key{
		Name: "use-proxy-protocol", Scope: process,
		Doc: "Expects a PROXY protocol header with the client's address at the start of every connection. The " +
			"address in the header is used only if the connection comes from a network in proxy-real-ip-cidr.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Clients.ProxyProtocol }, nginx.Bool),
		Check: func(c *Config) string { return trustsEveryone(c, c.Global.Clients.ProxyProtocol) },
	}
	proxyProtocolHeaderTimeout = Key{
		Name: "proxy-protocol-header-timeout", Scope: process,
		Doc:    "The maximum time to wait for the PROXY protocol header (use-proxy-protocol).",
		Values: "a time such as 5s", Example: "2s", Default: "5s",
		Parse: nginx.Into(func(c *Config) *time.Duration { return &c.Global.Clients.ProxyTimeout }, nginx.Timeout),
	}
)

// BesideTrustedProxies returns a warning about a setting of the ConfigMap that also decides about proxies, although a
// server of Caddy has trusted_proxies. data is the data of the ConfigMap. Package realip combines the settings.
func (c *Config) BesideTrustedProxies(data map[string]string) []report.Problem {
	o := &c.Global.Clients
	by, message := "", "trusted_proxies of Caddy's global option servers names proxies, too: a proxy is only trusted "+
		"if both trust it, and the client has the last address in the header that does not belong to such a proxy"
	switch {
	case o.UseForwarded:
		by = useForwardedHeaders.Name
	case o.RealIP && data[enableRealIP.Name] == "true":
		by = enableRealIP.Name
	case o.RealIP && strings.Contains(data[annotations.ServersSnippet.Name], snippets.SetRealIPFrom):
		by = annotations.ServersSnippet.Name
	case o.RealIP:
		by = httpSnippet.Name
	case o.NamesProxies():
		by = proxyRealIPCIDR.Name
	case o.ProxyProtocol:
		by, message = useProxyProtocol.Name, "trusted_proxies of Caddy's global option servers applies to the "+
			"addresses in PROXY protocol headers: it must not list the load balancers that send these headers"
	default:
		return nil
	}
	return []report.Problem{{
		Severity: report.Warning, Reason: report.InvalidEntry, Field: "data[" + by + "]", Message: message,
	}}
}

// trustsEveryone returns a warning if a key lets trusted clients choose their address (on), and every client is
// trusted. Otherwise it returns "". The key takes effect even with the warning, because ingress-nginx trusts every
// client by default.
func trustsEveryone(c *Config, on bool) string {
	if !on || len(c.Global.Clients.Trusted) > 0 {
		return ""
	}
	return "every client is trusted, and can choose its address: set proxy-real-ip-cidr to the networks of the " +
		"proxies in front of the controller"
}
