package configmap

import "github.com/k8singress/k8singress/internal/nginx"

// proxySSLLocationOnly is about proxy-ssl-*, which hold for the paths of their Ingress here in any case.
var proxySSLLocationOnly = Key{
	Name: "proxy-ssl-location-only",
	Doc: "What proxy-ssl-* say holds for the paths of their Ingress only, whatever stands here. In ingress-nginx that needs `true`: else the " +
		"oldest Ingress of a host says it for those of the host that say nothing. With `false` the Events of such an Ingress tell.",
	Values: booleans, Example: "true", Default: "false",
	Parse: nginx.Into(func(c *Config) *bool { return &c.Defaults.BackendTLSByPath }, nginx.Bool),
}
