package caddyfile

import (
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// line is one option in the Caddyfile.
type line struct {
	args []string
	// tokens are all tokens of the option, including its name and its block.
	tokens caddyfile.Segment
}

// options is sorted as in the documentation. The Values of a row are its grammar: the number of arguments, and whether
// it has a block.
var options = slices.Concat(objectOptions, trafficOptions, hostOptions)

// objectOptions decide which objects are read, and from where.
var objectOptions = option.Table[draft, *line]{
	{
		Name: "kubeconfig", Values: "<file>", Parse: one(func(d *draft) *string { return &d.kubeconfig }, anything),
		Doc:     "A kubeconfig file that says how to reach the API server.",
		Example: "kubeconfig /etc/kubernetes/admin.conf", Default: "the service account of the pod that Caddy runs in",
	},
	{
		Name: "manifests", Values: "<folder>", Parse: one(func(d *draft) *string { return &d.manifests }, anything),
		Doc: "Reads a folder of Kubernetes YAML in place of a cluster, and follows changes of its files. There is " +
			"no API server then. A relative path counts from the directory that Caddy was started in. Of Ingresses " +
			"without a `creationTimestamp`, the last by namespace and name counts as the oldest, as in ingress-nginx.",
		Example: "manifests ./manifests", Default: "none",
	},
	{
		Name: "source", Values: "none", Parse: setSource,
		Doc: "Follows nothing. The process serves the document that `PUT /k8singress/config` brings, as `GET " +
			"/k8singress/config` of another process gave it.",
		Example: "source none", Default: "a cluster, or the folder of `manifests`",
	},
	{
		Name: "ingress_class", Values: "<name>",
		Parse: one(func(d *draft) *string { return &d.config.IngressClass }, subdomain),
		Doc: "The value of the older annotation `kubernetes.io/ingress.class` that is ours. `spec.ingressClassName` " +
			"names an IngressClass instead, and each one with our `controller_name` is served, whatever its own " +
			"name. Only with `manifests`, an Ingress may name this class there without such an object.",
		Example: "ingress_class edge", Default: settings.DefaultIngressClass,
	},
	{
		Name: "ingress_class_by_name", Parse: enable(func(d *draft) *bool { return &d.config.IngressClassByName }),
		Doc: "Serves Ingresses whose `spec.ingressClassName` is that of `ingress_class`, too, whether there is an " +
			"IngressClass of this name or not, and whatever its `spec.controller` is. With `namespaces`, where " +
			"IngressClasses may not be read, this holds without the option.",
		Example: "ingress_class_by_name", Default: "an IngressClass counts by its `spec.controller`",
	},
	{
		Name: "controller_name", Values: "<domain/path>",
		Parse: one(func(d *draft) *string { return &d.config.ControllerName }, controllerName),
		Doc: "The `spec.controller` of the IngressClasses that are ours. The default is that of ingress-nginx, " +
			"because the field of an IngressClass cannot be changed later.",
		Example: "controller_name example.com/edge", Default: settings.DefaultControllerName,
	},
	{
		Name:    "watch_ingress_without_class",
		Parse:   enable(func(d *draft) *bool { return &d.config.WatchIngressWithoutClass }),
		Doc:     "Serves Ingresses that name no class, too.",
		Example: "watch_ingress_without_class", Default: "they are left to the default class of the cluster",
	},
	{
		Name: "namespaces", Values: "<name>...",
		Parse:   many(func(d *draft) *[]string { return &d.namespaces }, label),
		Doc:     "Follows the objects of these namespaces only.",
		Example: "namespaces shop web", Default: "all",
	},
	{
		Name: "namespace_selector", Values: "<selector>",
		Parse: one(func(d *draft) *string { return &d.selector }, selector),
		Doc: "Serves Ingresses of those namespaces only whose labels match, such as `team=shop` or `\"team in " +
			"(shop, web)\"`. It needs the right to read namespaces, which [the chart](install.md) gives with " +
			"`controller.scope.namespaceSelector`.",
		Example: "namespace_selector team=shop", Default: "all",
	},
	{
		Name: "secrets", Values: "all | referenced",
		Parse: one(func(d *draft) *string { return &d.secrets },
			words("", settings.SecretsAll, settings.SecretsReferenced)),
		Doc: "Which Secrets are read: `all` of the namespaces, or only those that Ingresses and options refer to, " +
			"each by a watch for its name. The right to read no others is enough then. The verdict on an Ingress " +
			"says which Secret may not be read.",
		Example: "secrets referenced", Default: "all",
	},
	{
		Name: "disable_catch_all", Parse: enable(func(d *draft) *bool { return &d.config.DisableCatchAll }),
		Doc: "Refuses rules without a host, Ingresses that are only a default backend, and aliases (`server-alias`) " +
			"that are regular expressions or wildcards below a public suffix, such as `*.com`: each would answer " +
			"for hosts of any owner.",
		Example: "disable_catch_all", Default: "they answer for the hosts that no other Ingress has",
	},
	{
		Name: "snippets", Values: "ignore",
		Parse: one(func(d *draft) *string { return &d.config.Snippets }, words("", settings.SnippetsIgnore)),
		Doc: "With `ignore`, Ingresses whose snippets may refuse requests are served without these snippets, and " +
			"get a warning. Snippets of nginx configuration are not run: what they keep out, `ignore` lets in. The " +
			"same holds for the ConfigMap's snippets, and for ModSecurity.",
		Example: "snippets ignore",
		Default: "requests for such Ingresses get 503; [annotations](annotations.md#configuration-snippet) says " +
			"for which",
	},
}
