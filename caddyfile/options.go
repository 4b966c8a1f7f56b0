package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// line is one option in the block of the global option k8singress.
type line struct {
	args []string
	// tokens are all tokens of the option, including its name and the tokens of its block.
	tokens caddyfile.Segment
}

// topic is a group of options, and a section of the documentation.
type topic struct {
	Title   string
	Options option.Table[draft, *line]
}

// topics lists all options in the order of the documentation. The field Values is the grammar of an option: how many
// arguments it takes, and whether it takes a block. If Default is empty, the documentation of the option consists of
// the comment of its field in package settings, which includes the default, followed by Doc.
var topics = []topic{
	{"Kubernetes objects", objectOptions},
	{"Servers", serverOptions},
	{"Requests", requestOptions},
	{"Certificates", certificateOptions},
	{"TCP and UDP ports", portOptions},
	{"Endpoints", endpointOptions},
	{"Tenants", tenantOptions},
	{"Status", statusOptions},
	{"Leader election", electionOptions},
}

// options lists the options of all topics.
var options = optionsOf(topics)

// optionsOf returns the options of topics in their order.
func optionsOf(topics []topic) option.Table[draft, *line] {
	var all option.Table[draft, *line]
	for _, t := range topics {
		all = append(all, t.Options...)
	}
	return all
}

// objectOptions configure which Kubernetes objects are read, and whether they come from a cluster or from files.
var objectOptions = option.Table[draft, *line]{
	{
		Name: "kubeconfig", Values: "<file>", Parse: one(func(d *draft) *string { return &d.kubeconfig }, anything),
		Example: "kubeconfig /etc/kubernetes/admin.conf",
	},
	{
		Name: "manifests", Values: "<folder>", Parse: one(func(d *draft) *string { return &d.manifests }, anything),
		Doc: "Reads Kubernetes manifests from a folder instead of watching a cluster, and reads them again when " +
			"files change. No API server is used. A relative path is relative to the directory in which Caddy was " +
			"started. Among Ingresses without a `creationTimestamp`, the Ingress whose namespace and name sort last " +
			"is treated as the oldest, as in ingress-nginx.",
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
		Parse:   one(func(d *draft) *string { return &d.config.IngressClass }, subdomain),
		Example: "ingress_class edge",
	},
	{
		Name: "ingress_class_by_name", Parse: enable(func(d *draft) *bool { return &d.config.IngressClassByName }),
		Example: "ingress_class_by_name",
	},
	{
		Name: "controller_name", Values: "<domain/path>",
		Parse:   one(func(d *draft) *string { return &d.config.ControllerName }, controllerName),
		Example: "controller_name example.com/edge",
	},
	{
		Name:    "watch_ingress_without_class",
		Parse:   enable(func(d *draft) *bool { return &d.config.WatchIngressWithoutClass }),
		Example: "watch_ingress_without_class",
	},
	{
		Name: "namespaces", Values: "<name>...",
		Parse:   many(func(d *draft) *[]string { return &d.namespaces }, label),
		Example: "namespaces shop web",
	},
	{
		Name: "namespace_selector", Values: "<selector>",
		Parse: one(func(d *draft) *string { return &d.selector }, selector),
		Doc: "The option requires permission to read namespaces, which [the chart](install.md) grants with " +
			"`controller.scope.namespaceSelector`.",
		Example: "namespace_selector team=shop",
	},
	{
		Name: "secrets", Values: "all | referenced",
		Parse: one(func(d *draft) *string { return &d.secrets },
			words("", settings.SecretsAll, settings.SecretsReferenced)),
		Example: "secrets referenced",
	},
	{
		Name: "disable_catch_all", Parse: enable(func(d *draft) *bool { return &d.config.DisableCatchAll }),
		Example: "disable_catch_all",
	},
	{
		Name: "snippets", Values: "ignore",
		Parse:   one(func(d *draft) *string { return &d.config.Snippets }, words("", settings.SnippetsIgnore)),
		Doc:     "[Annotations](annotations.md#configuration-snippet) describes the details.",
		Example: "snippets ignore",
	},
	{
		Name: "configmap", Values: "<namespace/name>",
		Parse:   value(func(d *draft) *ir.Name { return &d.config.ConfigMap }, namespacedName),
		Doc:     "The page [ConfigMap](configmap.md) lists the keys.",
		Example: "configmap ingress-nginx/ingress-nginx-controller",
	},
}
