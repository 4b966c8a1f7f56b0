package configmap

import (
	"time"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

const booleans = "true or false"

// The keys for the client's address.
var (
	useForwardedHeaders = Key{
		Name: "use-forwarded-headers", Scope: process,
		Doc: "Trusts the X-Forwarded-* headers of requests that come from proxy-real-ip-cidr, and passes them on. " +
			"Otherwise endpoints get the headers of the controller only. Set it behind another proxy that sets " +
			"these headers, and nowhere else.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Clients.UseForwarded }, nginx.Bool),
		Check: func(c *Config) string { return trustsEveryone(c, c.Global.Clients.UseForwarded) },
	}
	computeFullForwardedFor = Key{
		Name: "compute-full-forwarded-for", Scope: process,
		Doc: "Appends the address that a request comes from to its X-Forwarded-For header, instead of replacing the " +
			"header by the client's address. It goes with use-forwarded-headers.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Clients.AppendForwarded }, nginx.Bool),
	}
	forwardedForHeader = Key{
		Name: "forwarded-for-header", Scope: process,
		Doc:    "The header that has the client's address, with use-forwarded-headers or enable-real-ip.",
		Values: "the name of a header", Example: "CF-Connecting-IP", Default: "X-Forwarded-For",
		Parse: nginx.Into(func(c *Config) *string { return &c.Global.Clients.Header }, nginx.Token),
	}
	enableRealIP = Key{
		Name: "enable-real-ip", Scope: process,
		Doc: "Reads the client's address from forwarded-for-header, if the request comes from proxy-real-ip-cidr. " +
			"The other X-Forwarded-* headers are not trusted.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Clients.RealIP }, nginx.Bool),
		Check: func(c *Config) string { return trustsEveryone(c, c.Global.Clients.RealIP) },
	}
	proxyRealIPCIDR = Key{
		Name: "proxy-real-ip-cidr", Scope: process,
		Doc: "The networks of the proxies in front, whose headers and PROXY protocol are trusted. These proxies may " +
			"have any number of connections, while other clients share the connections by address. If none of the " +
			"networks can be read, no proxy is trusted. Set it: the default lets every client choose the address " +
			"that it seems to come from.",
		Values: "networks and addresses, with commas between them", Example: "10.0.0.0/8,fd00::/8",
		Default: "all addresses",
		Parse:   nginx.Into(func(c *Config) *[]string { return &c.Global.Clients.Trusted }, nginx.Networks),
		Lines:   true,
	}
	useProxyProtocol = Key{
		Name: "use-proxy-protocol", Scope: process,
		Doc: "Every connection begins with a PROXY protocol header, with the address of the client. It counts if " +
			"the connection comes from proxy-real-ip-cidr.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Clients.ProxyProtocol }, nginx.Bool),
		Check: func(c *Config) string { return trustsEveryone(c, c.Global.Clients.ProxyProtocol) },
	}
	proxyProtocolHeaderTimeout = Key{
		Name: "proxy-protocol-header-timeout", Scope: process,
		Doc:    "How long the PROXY protocol header may take to come.",
		Values: "a time such as 5s", Example: "2s", Default: "5s",
		Parse: nginx.Into(func(c *Config) *time.Duration { return &c.Global.Clients.ProxyTimeout }, nginx.Timeout),
	}
)

// trustsEveryone returns a warning if a key trusts addresses that clients send and every client may send them. This is
// the default of ingress-nginx, so the key takes effect nevertheless.
func trustsEveryone(c *Config, on bool) string {
	if !on || len(c.Global.Clients.Trusted) > 0 {
		return ""
	}
	return "every client is trusted, and can choose the address that it seems to come from: name the networks of " +
		"the proxies in front with proxy-real-ip-cidr"
}
