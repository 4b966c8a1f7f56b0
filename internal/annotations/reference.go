package annotations

import (
	"fmt"
	"iter"
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

These are the annotations that work here: those of ingress-nginx with the prefix ` + "`" + Prefix + "`" + `, and some of our own for
what ingress-nginx has no word for, with the prefix ` + "`" + OwnPrefix + "`" + `.
An annotation with a value that cannot be used has no effect; the others of its Ingress do. ` + "`caddy k8singress lint`" + `, the log, an
Event and ` + "`/k8singress/objects`" + ` say what is the matter with it. Values are taken as they are: Caddy's placeholders mean nothing in them.
An empty value asks for nothing. What an Ingress does not say, the [ConfigMap](configmap.md) may say for all.

The scope is what an annotation changes: all of its Ingress, or each path. The risk is how much it lets its author do, as
ingress-nginx ranks it.

## Supported

`

const referenceIgnored = `## Accepted, without effect

These tune nginx and mean nothing here. Nobody is told, whatever their value is:

| annotation | why it has no effect |
| --- | --- |
`

const referenceGuards = `
## Not supported yet, and closed

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
	for row := range rows(false) {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s |\n", row.title(), row.anchor(), row.Scope, row.Risk, row.Default)
	}
	b.WriteString("\n")
	for row := range rows(false) {
		b.WriteString(section(row))
	}
	b.WriteString(referenceIgnored)
	for row := range rows(true) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", row.title(), row.Ignored)
	}
	b.WriteString(referenceGuards)
	for _, name := range guards {
		fmt.Fprintf(&b, "- `%s`\n", name)
	}
	b.WriteString(referenceUnsupported)
	for _, name := range known {
		if Find(name) == nil && !slices.Contains(guards, name) {
			fmt.Fprintf(&b, "- `%s`\n", name)
		}
	}
	return b.String()
}

// rows are those that have an effect, or those that have none.
func rows(ignored bool) iter.Seq[*Annotation] {
	return func(yield func(*Annotation) bool) {
		for i := range Table {
			if (Table[i].Ignored != "") == ignored && !yield(&Table[i]) {
				return
			}
		}
	}
}

// title is how the documentation calls an annotation: the prefix of most of them goes without saying.
func (a *Annotation) title() string {
	if a.Own {
		return a.Key()
	}
	return a.Name
}

// anchor is what a link to the heading of an annotation has behind its #.
func (a *Annotation) anchor() string { return strings.NewReplacer(".", "", "/", "").Replace(a.title()) }

func section(row *Annotation) string {
	return fmt.Sprintf("### %s\n\n%s\n\nValue: %s. Default: %s. Example: `%s`\n\nScope: %s. Risk: %s.\n\n",
		row.title(), row.Doc, row.Values, row.Default, row.Example, row.Scope, row.Risk)
}
