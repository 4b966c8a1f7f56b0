package configmap

import (
	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/nginx"
)

// autoHTTPS is a key that ingress-nginx does not have. An Ingress says it in the annotation k8singress.io/auto-https.
var autoHTTPS = Key{
	Name: "auto-https", Doc: "It is no key of ingress-nginx. " + annotations.AutoHTTPS.Doc,
	Values: annotations.AutoHTTPS.Values, Example: "off", Default: annotations.AutoHTTPS.Default,
	Parse: nginx.Into(func(c *Config) *string { return &c.Defaults.AutoHTTPS }, annotations.ReadAutoHTTPS),
}
