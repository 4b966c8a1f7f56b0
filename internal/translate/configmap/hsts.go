package configmap

import (
	"math"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

// The keys for HSTS.
var (
	hsts = Key{
		Name: "hsts", Scope: process,
		Doc: "Adds a Strict-Transport-Security header to every response over TLS, in place of the endpoint's own: " +
			"browsers use HTTPS only for the host from then on. With `false`, the header of the endpoint is passed on.",
		Values: booleans, Example: "false", Default: "true",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.HSTS.Off }, nginx.No),
	}
	hstsMaxAge = Key{
		Name: "hsts-max-age", Scope: process,
		Doc:    "For how many seconds browsers remember it. 0 makes them forget.",
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
		Doc:    "Says that it holds for all hosts below this one, too.",
		Values: booleans, Example: "false", Default: "true",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.HSTS.ExcludeSubdomains }, nginx.No),
	}
	hstsPreload = Key{
		Name: "hsts-preload", Scope: process,
		Doc:    "Says that the host may be built into browsers. They take it back slowly.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.HSTS.Preload }, nginx.Bool),
	}
)
