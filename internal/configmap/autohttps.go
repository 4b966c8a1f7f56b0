package configmap

import (
	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/nginx"
)

// autoHTTPS is a key of our own. An Ingress says it in the annotation k8singress.io/auto-https.
var autoHTTPS = Key{
	Name: "auto-https", Own: true, Doc: "It is no key of ingress-nginx. " + annotations.AutoHTTPS.Doc,
	Values: annotations.AutoHTTPS.Values, Example: "off", Default: annotations.AutoHTTPS.Default,
	parse: nginx.Into(func(c *Config) *string { return &c.Defaults.AutoHTTPS }, annotations.ReadAutoHTTPS),
}
