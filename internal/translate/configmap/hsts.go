package configmap

import (
	"math"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

// The ConfigMap keys that configure the Strict-Transport-Security header (HSTS).
var (
	hsts = Key{
		Name: "hsts", Scope: process,
		Doc: "Adds a Strict-Transport-Security header to every response over TLS, in place of the endpoint's own " +
			"header. Browsers then use only HTTPS for the host. With `false`, the endpoint's own header is forwarded.",
		Values: booleans, Example: "false", Default: "true",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.HSTS.Off }, nginx.No),
	}
	hstsMaxAge = Key{
		Name: "hsts-max-age", Scope: process,
		Doc: "The number of seconds for which browsers use only HTTPS for the host (max-age in the header " +
			"Strict-Transport-Security). With 0, browsers may use HTTP again.",
		Values: "a number of seconds", Example: "63072000", Default: "31536000",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.HSTS.MaxAge }, func(value string) (int, error) {
			n, err := nginx.Number(0, math.MaxInt32)(value)
			if err == nil && n == 0 {
				n = -1
			}
			return n, err
		}),
	}
	hstsIncludeSubdomains = Key{
		Name: "hsts-include-subdomains", Scope: process,
		Doc: "Adds includeSubDomains to the header Strict-Transport-Security, so that browsers also use only " +
			"HTTPS for all subdomains of the host.",
		Values: booleans, Example: "false", Default: "true",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.HSTS.ExcludeSubdomains }, nginx.No),
	}
	hstsPreload = Key{
		Name: "hsts-preload", Scope: process,
		Doc: "Adds preload to the header Strict-Transport-Security, which allows browser vendors to add the host to " +
			"their preload lists. Removing a host from these lists takes months.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.HSTS.Preload }, nginx.Bool),
	}
)
