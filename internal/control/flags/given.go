package flags

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/option"
)

// Given maps the names of the flags on a command line, without dashes, to their values in the order of the command
// line.
type Given map[string][]string

// value returns the value that a flag has in the end. As in ingress-nginx, this is the last one, except for lists.
func (g Given) value(row *Row) string {
	values := g[row.Name]
	if len(values) == 0 {
		return ""
	}
	if isList(row) {
		return strings.Join(values, ",")
	}
	return values[len(values)-1]
}

// isList reports whether the values of a flag that is given several times are joined.
func isList(row *Row) bool { return FormatOf(row).Type == "list" }

// reading parses the values of the flags.
type reading struct {
	option.Reading[Settings]
	given Given
}

// read parses the value of one flag.
func (r *reading) read(row *Row) {
	field := "--" + row.Name
	if row.Ignored != "" {
		r.Warn("", field, "this flag has no effect: "+row.Ignored)
		return
	}
	value := r.given.value(row)
	if !isList(row) && slices.ContainsFunc(r.given[row.Name], func(v string) bool { return v != value }) {
		r.Warn("", field, fmt.Sprintf("this flag is given with different values, and only the last one, %.64q, has an "+
			"effect: remove the others", value))
	}
	if problem := unreplaced(value); problem != "" {
		r.Refuse("", field, problem)
		return
	}
	if strings.TrimSpace(value) == "" {
		r.empty(row)
		return
	}
	r.Read(row, value, field)
}

// empty reports a flag without a value. As in ingress-nginx, an empty value is an error for a number, and otherwise
// means the default.
func (r *reading) empty(row *Row) {
	field := "--" + row.Name
	switch kind := FormatOf(row).Type; {
	case row.Default == "none":
	case kind == "string" || kind == "namespace/name":
		r.Warn("", field, fmt.Sprintf("the value is empty, so the default has an effect (%s): write a value, or "+
			"remove the flag", row.Default))
	default:
		r.Refuse("", field, fmt.Sprintf("the value is empty: write %s, or remove the flag", row.Values))
	}
}

// reference matches a reference to an environment variable, which Kubernetes or a shell should have replaced.
var reference = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)|\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// fieldPaths has, for each variable that manifests of ingress-nginx use, the field of the pod with its value.
var fieldPaths = map[string]string{
	"POD_NAMESPACE": "metadata.namespace", "POD_NAME": "metadata.name", "POD_IP": "status.podIP",
	"NODE_NAME": "spec.nodeName", "HOST_IP": "status.hostIP",
}

// unreplaced returns the problem of a value with a reference to an environment variable, or "".
func unreplaced(value string) string {
	found := reference.FindStringSubmatch(value)
	if found == nil {
		return ""
	}
	name := found[1] + found[2]
	define := fmt.Sprintf("add %s to env of the container", name)
	if path := fieldPaths[name]; path != "" {
		define += " (valueFrom.fieldRef.fieldPath: " + path + ")"
	}
	if found[2] != "" {
		return fmt.Sprintf("the value contains %s, and Kubernetes replaces only the form $(%s): write it, and %s",
			found[0], name, define)
	}
	return fmt.Sprintf("the value contains %s, which Kubernetes has not replaced, because the container has no "+
		"environment variable %s: %s, or write the value itself", found[0], name, define)
}
