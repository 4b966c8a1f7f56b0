package configmap

import "github.com/k8singress/k8singress/internal/model/nginx"

// The ConfigMap keys that configure the Server header of responses.
var (
	serverTokens = Key{
		Name: "server-tokens", Scope: process,
		Doc: "Adds the header `Server: k8singress` to responses, unless the endpoint's Server header is forwarded " +
			"because of allow-backend-server-header. The header contains no version.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.ServerTokens }, nginx.Bool),
	}
	allowBackendServerHeader = Key{
		Name: "allow-backend-server-header", Scope: process,
		Doc: "Forwards the Server header of endpoints to clients. With `false`, this header is removed. In " +
			"ingress-nginx, forwarding also requires server-tokens, because without server-tokens the header is " +
			"removed from all responses.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.BackendServer }, nginx.Bool),
	}
)
