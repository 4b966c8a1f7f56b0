package configmap

import "github.com/k8singress/k8singress/internal/nginx"

// proxySSLLocationOnly has no effect but on verdicts: proxy-ssl-* hold for the paths of their Ingress in any case.
var proxySSLLocationOnly = Key{
	Name: "proxy-ssl-location-only",
	Doc: "The annotations proxy-ssl-* hold for the paths of their Ingress only, whatever stands here. In ingress-nginx that needs `true`: " +
		"otherwise the oldest Ingress of a host sets them for the Ingresses of the host without them. With `false`, Events of such an " +
		"Ingress say so.",
	Values: booleans, Example: "true", Default: "false",
	Parse: nginx.Into(func(c *Config) *bool { return &c.Defaults.BackendTLSByPath }, nginx.Bool),
}
