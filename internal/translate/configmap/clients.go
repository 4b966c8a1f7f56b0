package configmap

import (
	"time"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

const booleans = "true or false"

// The ConfigMap keys that determine the address of a client.
var (
	useForwardedHeaders = Key{
		Name: "use-forwarded-headers", Scope: process,
		Doc: "Trusts the X-Forwarded-* headers of requests from proxy-real-ip-cidr, and forwards them. Otherwise " +
			"endpoints get only the controller's own headers. Set it only behind another proxy that sets these " +
			"headers.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Clients.UseForwarded }, nginx.Bool),
		Check: func(c *Config) string { return trustsEveryone(c, c.Global.Clients.UseForwarded) },
	}
	computeFullForwardedFor = Key{
		Name: "compute-full-forwarded-for", Scope: process,
		Doc: "Appends the address of the connecting client or proxy to the X-Forwarded-For header, instead of " +
			"replacing the header by the client's address. It requires use-forwarded-headers.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Clients.AppendForwarded }, nginx.Bool),
	}
	forwardedForHeader = Key{
		Name: "forwarded-for-header", Scope: process,
		Doc:    "The header with the client's address, with use-forwarded-headers or enable-real-ip.",
		Values: "the name of a header", Example: "CF-Connecting-IP", Default: "X-Forwarded-For",
		Parse: nginx.Into(func(c *Config) *string { return &c.Global.Clients.Header }, nginx.Token),
	}
	enableRealIP = Key{
		Name: "enable-real-ip", Scope: process,
		Doc: "Takes the client's address from forwarded-for-header if the request comes from proxy-real-ip-cidr. " +
			"The other X-Forwarded-* headers are not trusted.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Clients.RealIP }, nginx.Bool),
		Check: func(c *Config) string { return trustsEveryone(c, c.Global.Clients.RealIP) },
	}
	proxyRealIPCIDR = Key{
		Name: "proxy-real-ip-cidr", Scope: process,
		Doc: "The networks of trusted proxies in front of the controller. Their headers and PROXY protocol " +
			"headers are trusted. They may open any number of connections, while other clients have a limited share " +
			"for each address. If no network in the list is valid, no proxy is trusted. Always set it, since the " +
			"default lets every client choose its address.",
		Values: "comma-separated networks and addresses", Example: "10.0.0.0/8,fd00::/8",
		Default: "all addresses",
		Parse:   nginx.Into(func(c *Config) *[]string { return &c.Global.Clients.Trusted }, nginx.Networks),
		Lines:   true,
	}
	useProxyProtocol = Key{
		Name: "use-proxy-protocol", Scope: process,
		Doc: "Expects a PROXY protocol header with the client's address at the start of every connection. The " +
			"address is used if the connection comes from proxy-real-ip-cidr.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Clients.ProxyProtocol }, nginx.Bool),
		Check: func(c *Config) string { return trustsEveryone(c, c.Global.Clients.ProxyProtocol) },
	}
	proxyProtocolHeaderTimeout = Key{
		Name: "proxy-protocol-header-timeout", Scope: process,
		Doc:    "The time within which the PROXY protocol header must arrive.",
		Values: "a time such as 5s", Example: "2s", Default: "5s",
		Parse: nginx.Into(func(c *Config) *time.Duration { return &c.Global.Clients.ProxyTimeout }, nginx.Timeout),
	}
)

// trustsEveryone returns a warning if on is true and every client is trusted, so that clients can choose the address
// that is assumed for them. This is the default of ingress-nginx, so the key takes effect nevertheless.
func trustsEveryone(c *Config, on bool) string {
	if !on || len(c.Global.Clients.Trusted) > 0 {
		return ""
	}
	return "every client is trusted, and can choose its address: set proxy-real-ip-cidr to the networks of the " +
		"proxies in front of the controller"
}
