package configmap

import "github.com/k8singress/k8singress/internal/nginx"

// allowCrossNamespaceResources is about what annotations name.
var allowCrossNamespaceResources = Key{
	Name: "allow-cross-namespace-resources", Scope: process,
	Doc: "Lets the annotations of an Ingress name Secrets of other namespaces. Everybody who may write Ingresses can make use of " +
		"every Secret then.",
	Values: booleans, Example: "true", Default: "false",
	Parse: nginx.Into(func(c *Config) *bool { return &c.Defaults.CrossNamespace }, nginx.Bool),
}
