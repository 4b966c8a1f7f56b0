package caddyfile

import (
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// line is one option in the block of the global option.
type line struct {
	args []string
	// tokens are all tokens of the option, including its name and the tokens of its block.
	tokens caddyfile.Segment
}

// options lists all options in the order of the documentation. The field Values is the grammar of an option: how many
// arguments it takes, and whether it takes a block.
var options = slices.Concat(objectOptions, trafficOptions, hostOptions)

// objectOptions select the Kubernetes objects to read, and the source that they are read from.
var objectOptions = option.Table[draft, *line]{
	{
		Name: "kubeconfig", Values: "<file>", Parse: one(func(d *draft) *string { return &d.kubeconfig }, anything),
		Doc:     "The path of a kubeconfig file for access to the API server.",
		Example: "kubeconfig /etc/kubernetes/admin.conf", Default: "the service account of the pod that Caddy runs in",
	},
	{
		Name: "manifests", Values: "<folder>", Parse: one(func(d *draft) *string { return &d.manifests }, anything),
		Doc: "Reads a folder of Kubernetes manifests instead of a cluster, and reads it again when its files " +
			"change. No API server is used. A relative path is relative to the directory in which Caddy was " +
			"started. Among Ingresses without a `creationTimestamp`, the one whose namespace and name sort last is " +
			"treated as the oldest, as in ingress-nginx.",
		Example: "manifests ./manifests", Default: "none",
	},
	{
		Name: "source", Values: "none", Parse: setSource,
		Doc: "Watches nothing. The process serves the document that is sent to it with `PUT /k8singress/config`. " +
			"Another process returns this document for `GET /k8singress/config`.",
		Example: "source none", Default: "a cluster, or the folder of `manifests`",
	},
	{
		Name: "ingress_class", Values: "<name>",
		Parse: one(func(d *draft) *string { return &d.config.IngressClass }, subdomain),
		Doc: "The value of the older annotation `kubernetes.io/ingress.class` that selects this controller. " +
			"`spec.ingressClassName` refers to an IngressClass object instead: the controller serves every " +
			"IngressClass with its `controller_name`, under any name. Only with `manifests`, an Ingress may also " +
			"name this class in `spec.ingressClassName` if there is no such object.",
		Example: "ingress_class edge", Default: settings.DefaultIngressClass,
	},
	{
		Name: "ingress_class_by_name", Parse: enable(func(d *draft) *bool { return &d.config.IngressClassByName }),
		Doc: "Also serves Ingresses whose `spec.ingressClassName` is the name in `ingress_class`, even if there is " +
			"no IngressClass of this name, or if its `spec.controller` names another controller. With `namespaces`, " +
			"and without the permission to read IngressClasses, the controller does so by default.",
		Example: "ingress_class_by_name", Default: "IngressClasses are selected by `spec.controller`",
	},
	{
		Name: "controller_name", Values: "<domain/path>",
		Parse: one(func(d *draft) *string { return &d.config.ControllerName }, controllerName),
		Doc: "The `spec.controller` of the IngressClasses that this controller serves. The default is the value of " +
			"ingress-nginx, because the field of an existing IngressClass cannot be changed.",
		Example: "controller_name example.com/edge", Default: settings.DefaultControllerName,
	},
	{
		Name:    "watch_ingress_without_class",
		Parse:   enable(func(d *draft) *bool { return &d.config.WatchIngressWithoutClass }),
		Doc:     "Also serves Ingresses that name no class.",
		Example: "watch_ingress_without_class",
		Default: "only if an IngressClass of this controller is the default class",
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
		Doc: "Which Secrets are read: `all` Secrets of the namespaces, or only the Secrets that Ingresses and " +
			"options refer to. Each `referenced` Secret is watched by its name, so no permission to read other " +
			"Secrets is necessary. If a Secret may not be read, the verdict on the Ingress names it.",
		Example: "secrets referenced", Default: "all",
	},
	{
		Name: "disable_catch_all", Parse: enable(func(d *draft) *bool { return &d.config.DisableCatchAll }),
		Doc: "Rejects rules without a host, Ingresses that only have a default backend, and aliases " +
			"(`server-alias`) that are regular expressions or wildcards below a public suffix, such as `*.com`. " +
			"Each of them would serve hosts of any owner.",
		Example: "disable_catch_all", Default: "such Ingresses serve the hosts that no other Ingress names",
	},
	{
		Name: "snippets", Values: "ignore",
		Parse: one(func(d *draft) *string { return &d.config.Snippets }, words("", settings.SnippetsIgnore)),
		Doc: "With `ignore`, Ingresses with snippets that may reject requests are served without these snippets, " +
			"and get a warning. Snippets of nginx configuration are never run, so with `ignore`, requests are " +
			"served that such a snippet would reject. The option also applies to the snippets in the ConfigMap, and " +
			"to ModSecurity.",
		Example: "snippets ignore",
		Default: "requests for Ingresses with such snippets get 503 ([details](annotations.md#configuration-snippet))",
	},
}
