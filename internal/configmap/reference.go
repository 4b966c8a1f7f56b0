package configmap

import (
	"fmt"
	"strings"
)

const referenceHead = "<!-- Printed from the table in internal/configmap/table.go by `make generate`. -->\n" + `
# ConfigMap

` + "```yaml" + `
apiVersion: v1
kind: ConfigMap
metadata:
  name: ingress-nginx-controller
  namespace: ingress-nginx
data:
  proxy-body-size: 8m
` + "```" + `

These are the keys of ingress-nginx's ConfigMap that work here, in the one that the option [` + "`configmap`" + `](caddyfile.md#configmap)
names. A key with a value that cannot be used has no effect; the others do.
` + "`caddy k8singress lint`" + `, the log, an Event and ` + "`/k8singress/objects`" + ` say what is the matter with it. Values are taken as they are:
Caddy's placeholders mean nothing in them. An empty value asks for nothing.

The keys with the name of an [annotation](annotations.md) are what an Ingress gets that does not have the annotation. A class may have a
ConfigMap of its own, too (` + "`spec.parameters`" + ` of the IngressClass), which counts before this one; the keys that hold for the process as a
whole have no effect there. Such a ConfigMap may keep requests out: while there is none of the name, or the parameters are no ConfigMap, all
Ingresses of the class answer 503, and the class and they are told. Only parameters of an API group, which are for another controller, have no
effect at all.

## Supported

| key | default | holds for |
| --- | --- | --- |
`

const referenceGuards = `## Not supported yet, and closed

These keep requests out. With one of them, all Ingresses answer 503 to every request until it is supported here, or removed:

`

const referenceTuning = `
## Accepted, without effect

These tune nginx in ways that nobody can see from outside, and mean nothing here. Nobody is told, whatever their value is:

`

const referenceDead = `
## Without effect in ingress-nginx, too

`

const referenceLater = `
## Not supported yet

ingress-nginx v1.15.1 has these too. Here they have no effect, and the ConfigMap is told so.

`

// reference is the documentation of the keys, printed from the table and from the list of known keys.
func reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	for i := range Table {
		row := &Table[i]
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", row.Name, row.Name, row.Default, row.holdsFor())
	}
	b.WriteString("\n")
	for i := range Table {
		row := &Table[i]
		fmt.Fprintf(&b, "### %s\n\n%s\n\nValue: %s. Default: %s. Example: `%s`\n\n", row.Name, row.Doc, row.Values, row.Default, row.Example)
	}
	for _, part := range []struct {
		head string
		fate fate
	}{
		{referenceGuards, fateGuard}, {referenceTuning, fateTuning}, {referenceDead, fateDead}, {referenceLater, fateLater},
	} {
		b.WriteString(part.head)
		for _, name := range withFate(part.fate) {
			fmt.Fprintf(&b, "- `%s`\n", name)
		}
	}
	return b.String()
}

func (k *Key) holdsFor() string {
	if k.Global {
		return "the process"
	}
	return "an Ingress that does not say otherwise"
}
