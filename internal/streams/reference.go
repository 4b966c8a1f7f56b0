package streams

import (
	"fmt"
	"strings"
)

const referenceHead = "<!-- Printed from the table in internal/streams/annotation.go by `make generate`. -->\n" + `
# Annotations of Services

` + "```yaml" + `
apiVersion: v1
kind: Service
metadata:
  name: db
  annotations:
    k8singress.io/tcp-ports: "5432:pg"
    k8singress.io/stream-idle-timeout: 1h
` + "```" + `

These annotations of a Service are for [TCP and UDP ports](tcp-udp.md). The first two open ports. The others say what such ports do, all
that lead to the Service, whether they were opened by them or by an entry of a ConfigMap.
An annotation with a value that cannot be used has no effect, and the others do; where a value says who gets in, or what is sent without
encryption, the ports stay closed. ` + "`caddy k8singress lint`" + `, the log, an Event and ` + "`/k8singress/objects`" + ` say what is the
matter. Values are taken as they are: Caddy's placeholders mean nothing in them. An empty value asks for nothing.

A change closes no port, and no connection: those that are open keep what was said before.

| annotation | default |
| --- | --- |
`

// reference is the documentation of the annotations, printed from the table.
func reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, row := range Table {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", row.Key(), anchor(row), row.Default)
	}
	for _, row := range Table {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\nValue: %s. Default: %s. Example: `%s`\n", row.Key(), row.Doc, row.Values, row.Default, row.Example)
	}
	return b.String()
}

// anchor is what a link to the heading of an annotation has behind its #.
func anchor(row *Annotation) string { return strings.NewReplacer(".", "", "/", "").Replace(row.Key()) }
