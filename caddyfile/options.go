package caddyfile

import (
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// line is one option in the block of the global option k8singress.
type line struct {
	args []string
	// tokens are all tokens of the option, including its name and the tokens of its block.
	tokens caddyfile.Segment
}

// options lists all options in the order of the documentation. The field Values is the grammar of an option: how many
// arguments it takes, and whether it takes a block.
var options = slices.Concat(objectOptions, trafficOptions, hostOptions)

// objectOptions configure which Kubernetes objects are read, and whether they come from a cluster or from files.
var objectOptions = option.Table[draft, *line]{
	{
		Name: "kubeconfig", Values: "<file>", Parse: one(func(d *draft) *string { return &d.kubeconfig }, anything),
		Doc:     "The path of a kubeconfig file for access to the API server.",
		Example: "kubeconfig /etc/kubernetes/admin.conf", Default: "the service account of the pod that Caddy runs in",
	},
	{
		Name: "manifests", Values: "<folder>", Parse: one(func(d *draft) *string { return &d.manifests }, anything),
		Doc: "Reads Kubernetes manifests from a folder instead of watching a cluster, and reads them again when " +
			"files change. No API server is used. A relative path is relative to the directory in which Caddy was " +
			"started. Among Ingresses without a `creationTimestamp`, the one whose namespace and name sort last is " +
			"treated as the oldest, as in ingress-nginx.",
		Example: "manifests ./manifests", Default: "none",
	},
	{
		Name: "source", Values: "none", Parse: setSource,
		Doc: "Does not watch a cluster or a folder. The process serves the configuration that it receives with `PUT " +
			"/k8singress/config` on the [admin API](admin.md). Another controller returns its configuration in this " +
			"form with `GET /k8singress/config`.",
		Example: "source none", Default: "a cluster, or the folder in `manifests`",
	},
	{
		Name: "ingress_class", Values: "<name>",
		Parse: one(func(d *draft) *string { return &d.config.IngressClass }, subdomain),
		Doc: "The value of the older annotation `kubernetes.io/ingress.class` with which an Ingress selects this " +
			"controller. The newer field `spec.ingressClassName` refers to an IngressClass instead. The controller " +
			"serves each IngressClass whose `spec.controller` is the value of `controller_name`, whatever the name " +
			"of the IngressClass is. With the option `manifests`, and only then, an Ingress may also use the value " +
			"of `ingress_class` in `spec.ingressClassName` if no IngressClass with this name exists.",
		Example: "ingress_class edge", Default: settings.DefaultIngressClass,
	},
	{
		Name: "ingress_class_by_name", Parse: enable(func(d *draft) *bool { return &d.config.IngressClassByName }),
		Doc: "Also serves Ingresses whose `spec.ingressClassName` is the name in `ingress_class`, even if no " +
			"IngressClass with this name exists, or if its `spec.controller` names another controller. This is the " +
			"default if `namespaces` is set and the controller has no permission to read IngressClasses.",
		Example: "ingress_class_by_name", Default: "IngressClasses are selected by `spec.controller`",
	},
	{
		Name: "controller_name", Values: "<domain/path>",
		Parse: one(func(d *draft) *string { return &d.config.ControllerName }, controllerName),
		Doc: "The `spec.controller` of the IngressClasses that this controller serves. The default is the value that " +
			"ingress-nginx uses, because `spec.controller` of an existing IngressClass cannot be changed.",
		Example: "controller_name example.com/edge", Default: settings.DefaultControllerName,
	},
	{
		Name:    "watch_ingress_without_class",
		Parse:   enable(func(d *draft) *bool { return &d.config.WatchIngressWithoutClass }),
		Doc:     "Also serves Ingresses without a class.",
		Example: "watch_ingress_without_class",
		Default: "Ingresses without a class are served only if an IngressClass of this controller is the default class",
	},
	{
		Name: "namespaces", Values: "<name>...",
		Parse:   many(func(d *draft) *[]string { return &d.namespaces }, label),
		Doc:     "Watches only the objects of these namespaces.",
		Example: "namespaces shop web", Default: "all",
	},
	{
		Name: "namespace_selector", Values: "<selector>",
		Parse: one(func(d *draft) *string { return &d.selector }, selector),
		Doc: "Serves only Ingresses of namespaces whose labels match, such as `team=shop` or `\"team in (shop, " +
			"web)\"`. It requires permission to read namespaces, which [the chart](install.md) grants with " +
			"`controller.scope.namespaceSelector`.",
		Example: "namespace_selector team=shop", Default: "all",
	},
	{
		Name: "secrets", Values: "all | referenced",
		Parse: one(func(d *draft) *string { return &d.secrets },
			words("", settings.SecretsAll, settings.SecretsReferenced)),
		Doc: "The Secrets that the controller reads. With `all`, it reads all Secrets in the namespaces that it " +
			"watches. With `referenced`, it reads only the Secrets to which Ingresses and options refer. It watches " +
			"each of them by name, and needs no permission to read other Secrets. If it has no permission to read a " +
			"Secret to which an Ingress refers, it reports this as a problem of the Ingress.",
		Example: "secrets referenced", Default: "all",
	},
	{
		Name: "disable_catch_all", Parse: enable(func(d *draft) *bool { return &d.config.DisableCatchAll }),
		Doc: "Rejects rules without a host, Ingresses that only have a default backend, and aliases (`server-alias`) " +
			"that are regular expressions or wildcards below a public suffix, such as `*.com`. Each of these would " +
			"serve hosts that belong to other namespaces.",
		Example: "disable_catch_all", Default: "Ingresses without a host serve all hosts that are not in another " +
			"Ingress",
	},
	{
		Name: "snippets", Values: "ignore",
		Parse: one(func(d *draft) *string { return &d.config.Snippets }, words("", settings.SnippetsIgnore)),
		Doc: "With `ignore`, Ingresses with snippets that may reject requests are served without these snippets, and " +
			"get a warning. Snippets of nginx configuration are never executed, so requests that a snippet rejects " +
			"in ingress-nginx are served here with `ignore`. The option also applies to the snippets in the " +
			"ConfigMap, and to ModSecurity.",
		Example: "snippets ignore",
		Default: "requests for Ingresses with such snippets get 503 ([details](annotations.md#configuration-snippet))",
	},
}
