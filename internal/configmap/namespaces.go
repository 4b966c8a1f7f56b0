package configmap

import "github.com/k8singress/k8singress/internal/nginx"

// allowCrossNamespaceResources is about references of annotations to other objects.
var allowCrossNamespaceResources = Key{
	Name: "allow-cross-namespace-resources", Scope: process,
	Doc: "Lets the annotations of an Ingress name Secrets of other namespaces. Every author of Ingresses can then use every " +
		"Secret.",
	Values: booleans, Example: "true", Default: "false",
	Parse: nginx.Into(func(c *Config) *bool { return &c.Defaults.CrossNamespace }, nginx.Bool),
}
