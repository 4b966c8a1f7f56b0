package configmap

import "github.com/k8singress/k8singress/internal/model/nginx"

// The keys for the Server header of responses.
var (
	serverTokens = Key{
		Name: "server-tokens", Scope: process,
		Doc: "Answers have the header `Server: k8singress`, unless allow-backend-server-header lets that of an " +
			"endpoint pass. There is no version in it.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.ServerTokens }, nginx.Bool),
	}
	allowBackendServerHeader = Key{
		Name: "allow-backend-server-header", Scope: process,
		Doc: "Lets the Server header of endpoints pass. Otherwise it is removed. In ingress-nginx it needs " +
			"server-tokens as well, which removes the header from all answers there.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.BackendServer }, nginx.Bool),
	}
)
