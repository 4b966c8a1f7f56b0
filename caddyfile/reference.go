package caddyfile

import (
	"fmt"
	"strings"
)

const referenceHead = "<!-- Printed from the table in caddyfile/options.go by `make generate`. -->\n" + `
# The Caddyfile of k8singress

` + "```" + `
{
	k8singress {
		manifests ./manifests
		http 127.0.0.1:8080
		https 127.0.0.1:8443
	}
}
` + "```" + `

The global option ` + "`k8singress`" + ` makes Caddy an ingress controller. It stands for the whole configuration: the servers on
the addresses of ` + "`http` and `https`" + `, and the TLS policy that takes certificates from Secrets. Sites in the same file keep
their own certificates. ` + "`caddy adapt`" + ` shows what it becomes. Without any option, it follows the cluster that it runs in.

## Options

`

const referenceTail = `## The storage

` + "```" + `
{
	storage kubernetes {
		namespace k8singress
		kubeconfig /etc/kubernetes/admin.conf
	}
}
` + "```" + `

Caddy's own option ` + "`storage`" + ` says where certificates and ACME accounts are kept; without it, that is a folder of this process.
` + "`kubernetes`" + ` keeps them in the Secrets of a namespace, where [all replicas share them](kubernetes.md#certificates-of-all-replicas). Both
lines may be left out. Defaults: the namespace that Caddy runs in, and the service account of the pod.

## The directive

` + "```" + `
k8singress [<matcher>] {
	pass_thru
}
` + "```" + `

In a site, the directive ` + "`k8singress`" + ` serves the Ingresses there: for sites with other handlers in front, such as an access
log or a rate limit. It needs the global option, whose servers can be turned off with ` + "`http off` and `https off`" + `. It comes before
` + "`reverse_proxy`" + ` in Caddy's order of directives, and behind ` + "`respond` and `redir`" + `: put them into a ` + "`route`" + ` block to say
another order.

` + "`pass_thru`" + ` hands requests for hosts that no Ingress has to the next handler. Default: they are answered with 404.

` + "```" + `
http:// {
	route {
		k8singress {
			pass_thru
		}
		respond "no Ingress has this host" 404
	}
}
` + "```" + `

In sites of your own, in place of the servers of the option:

` + "```" + `
{
	k8singress {
		http off
		https off
	}
}

shop.example.com {
	log
	k8singress
}
` + "```" + `
`

// reference is the documentation of the Caddyfile, printed from the table.
func reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	b.WriteString("| option | default |\n| --- | --- |\n")
	for _, o := range options {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", o.name, o.name, o.fallback)
	}
	b.WriteString("\n")
	for _, o := range options {
		usage := strings.TrimSpace(o.name + " " + o.args)
		fmt.Fprintf(&b, "### %s\n\n`%s`\n\n%s\n\nDefault: %s.", o.name, usage, o.doc, o.fallback)
		b.WriteString(example(&o, usage) + "\n\n")
	}
	b.WriteString(referenceTail)
	return b.String()
}

// example is left out where the usage says it all.
func example(o *option, usage string) string {
	switch {
	case o.least == 0 || o.example == usage:
		return ""
	case strings.Contains(o.example, "\n"):
		return " Example:\n\n```\n" + o.example + "\n```"
	}
	return " Example: `" + o.example + "`"
}
