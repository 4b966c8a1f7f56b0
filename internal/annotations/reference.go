package annotations

import (
	"fmt"
	"slices"
	"strings"
)

const referenceHead = "<!-- Printed from the table in internal/annotations/table.go by `make generate`. -->\n" + `
# Annotations

` + "```yaml" + `
metadata:
  annotations:
    nginx.ingress.kubernetes.io/rewrite-target: /$2
` + "```" + `

These are the annotations of ingress-nginx that work here, each with the prefix ` + "`" + Prefix + "`" + `.
An annotation with a value that cannot be used has no effect; the others of its Ingress do. ` + "`caddy k8singress lint`" + `, the log, an
Event and ` + "`/k8singress/objects`" + ` say what is the matter with it. Values are taken as they are: Caddy's placeholders mean nothing in them.

The scope is what an annotation changes: all of its Ingress, or each path. The risk is how much it lets its author do, as
ingress-nginx ranks it.

## Supported

`

const referenceGuards = `## Not supported yet, and closed

These keep requests out. An Ingress with one of them answers 503 to every request until it is supported here, or removed:

`

const referenceUnsupported = `
## Not supported yet

ingress-nginx v1.15.1 has these too. Here they have no effect, and each Ingress with one of them is told so.

`

// reference is the documentation of the annotations, printed from the table and from the list of known names.
func reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	b.WriteString("| annotation | scope | risk | default |\n| --- | --- | --- | --- |\n")
	for i := range Table {
		row := &Table[i]
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s |\n", row.Name, row.Name, row.Scope, row.Risk, row.Default)
	}
	b.WriteString("\n")
	for i := range Table {
		b.WriteString(section(&Table[i]))
	}
	b.WriteString(referenceGuards)
	for _, name := range guards {
		fmt.Fprintf(&b, "- `%s`\n", name)
	}
	b.WriteString(referenceUnsupported)
	for _, name := range known {
		if find(name) == nil && !slices.Contains(guards, name) {
			fmt.Fprintf(&b, "- `%s`\n", name)
		}
	}
	return b.String()
}

func section(row *Annotation) string {
	return fmt.Sprintf("### %s\n\n%s\n\nValue: %s. Default: %s. Example: `%s`\n\nScope: %s. Risk: %s.\n\n",
		row.Name, row.Doc, row.Values, row.Default, row.Example, row.Scope, row.Risk)
}
