package charts

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/control/flags"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

var update = flag.Bool("update", false, "rewrite values.schema.json")

// node is a JSON schema or a part of one.
type node = map[string]any

// types are the schemas for the words in known-values.txt. Every value may be null, with which Helm removes a default.
var types = map[string]node{
	"string":  {"type": []string{"string", "null"}},
	"integer": {"type": []string{"integer", "null"}},
	"boolean": {"type": []string{"boolean", "null"}},
	"scalar":  {"type": []string{"string", "number", "null"}},
	"array":   {"type": []string{"array", "null"}},
	"object":  {"type": []string{"object", "null"}},
	"strings": {"type": []string{"object", "null"},
		"additionalProperties": node{"type": []string{"string", "number", "boolean", "null"}}},
	"any": {},
}

// TestSchema checks that values.schema.json matches known-values.txt, the options of the Caddyfile and the flags.
func TestSchema(t *testing.T) {
	root := node{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
	known := rows(t, "k8singress/known-values.txt")
	for _, row := range known {
		add(t, root, splitPath(row[0]), row[1])
	}
	for _, row := range known {
		if row[1] == "any" {
			clear(add(t, root, splitPath(row[0]), row[1]))
		}
	}
	within(root, "rbac")["size"] = node{"enum": []string{"cluster", "namespaces", "least"}}
	// If the schema accepted other words, the chart would render neither a Deployment nor a DaemonSet, and an upgrade
	// would delete the running one.
	within(root, "controller")["kind"] = node{"enum": []string{"Deployment", "DaemonSet", "Both"}}
	root["properties"].(node)["controller"].(node)["required"] = []string{"kind"}
	// Without these objects, the chart would render no pods, or pods without rights.
	root["required"] = []string{"controller", "rbac"}
	for _, name := range []string{"controller", "rbac"} {
		root["properties"].(node)[name].(node)["type"] = "object"
	}
	within(root, "controller")["extraArgs"] = flagsOf()
	root["properties"].(node)["k8singress"] = own(t)
	text, err := json.MarshalIndent(root, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	fixture.Generated(t, "k8singress/values.schema.json", string(text)+"\n", *update)
	fixture.Generated(t, "k8singress/files/flags.txt", "# The flags that controller.extraArgs may have, printed from "+
		"internal/control/flags by `make generate`.\n"+strings.Join(flagNames(), "\n")+"\n", *update)
}

// TestReplaced checks that the options in replaced.txt exist, and that the chart knows the values that replace them.
func TestReplaced(t *testing.T) {
	var options, values []string
	for _, words := range rows(t, "k8singress/files/options.txt") {
		options = append(options, words[0])
	}
	for _, words := range rows(t, "k8singress/known-values.txt") {
		values = append(values, words[0])
	}
	for name := range own(t)["properties"].(node) {
		values = append(values, "k8singress."+name)
	}
	for _, words := range rows(t, "k8singress/files/replaced.txt") {
		known := len(words) == 1 || len(words) == 2 && slices.Contains(values, words[1])
		if !known || !slices.Contains(options, words[0]) {
			t.Errorf("there is no such option or value: %q", words)
		}
	}
}

// flagNames returns the names of the flags in extraArgs. The flags version and help are missing, because with them the
// process only prints something.
func flagNames() []string {
	names := []string{"config"}
	for i := range flags.Table {
		names = append(names, flags.Table[i].Name)
	}
	slices.Sort(names)
	return names
}

// rows returns the lines of a table, split into words.
func rows(t *testing.T, file string) [][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
			all = append(all, words)
		}
	}
	return all
}

// splitPath splits a path into names. One node label contains a dot.
func splitPath(path string) []string {
	before, label := strings.CutSuffix(path, ".kubernetes.io/os")
	names := strings.Split(before, ".")
	if label {
		names = append(names, "kubernetes.io/os")
	}
	return names
}

// within returns the properties of the object at a path. It sets the type of each object on the path.
func within(n node, path ...string) node {
	for {
		if n["properties"] == nil {
			n["type"], n["properties"] = []string{"object", "null"}, node{}
		}
		properties := n["properties"].(node)
		if len(path) == 0 {
			return properties
		}
		next, ok := properties[path[0]].(node)
		if !ok {
			next = node{}
			properties[path[0]] = next
		}
		n, path = next, path[1:]
	}
}

// add adds the type of a path to a schema and returns the schema of the path.
func add(t *testing.T, root node, path []string, word string) node {
	t.Helper()
	kind, ok := types[word]
	if !ok {
		t.Fatalf("%v: there is no type %q", path, word)
	}
	last := len(path) - 1
	parent := within(root, path[:last]...)
	found, _ := parent[path[last]].(node)
	if found == nil {
		found = node{}
		parent[path[last]] = found
	}
	maps.Copy(found, kind)
	return found
}

// own returns the schema for the chart's own values, which rejects unknown names.
func own(t *testing.T) node {
	t.Helper()
	options, replaced := node{}, map[string]bool{}
	for _, words := range rows(t, "k8singress/files/replaced.txt") {
		replaced[words[0]] = true
	}
	for _, words := range rows(t, "k8singress/files/options.txt") {
		if !replaced[words[0]] {
			options[words[0]] = optionType(t, strings.Join(words[1:], " "))
		}
	}
	text := types["string"]
	texts := node{"type": "array", "items": node{"type": "string"}}
	return strict(node{
		"options": suggesting(options),
		"chains":  node{"type": "object", "additionalProperties": node{"type": "string"}}, "issuers": texts,
		"hostOwners":       node{"type": "object", "additionalProperties": texts},
		"storageNamespace": strict(node{"name": text, "create": types["boolean"], "copy": types["boolean"]}),
		"storage":          text, "admin": node{"type": "string"}, "globalOptions": text, "caddyfile": text,
		"alerts": types["boolean"],
		"dashboard": strict(node{"enabled": types["boolean"], "namespace": text, "labels": types["strings"],
			"annotations": types["strings"]}),
		"volumes": strict(node{"data": node{"type": "string"}, "tmp": node{"type": "string"}}),
	})
}

// flagsOf returns the schema for flags. It rejects the values with which the controller would not start.
func flagsOf() node {
	properties := node{"config": types["strings"]["additionalProperties"]}
	for i := range flags.Table {
		properties[flags.Table[i].Name] = flagType(&flags.Table[i])
	}
	of := suggesting(properties)
	of["type"] = []string{"object", "null"}
	return of
}

// evaluated matches values that Helm or Kubernetes replaces: templates, and environment variables such as
// $(POD_NAMESPACE).
const evaluated = `.*(\{\{|\$\().*`

// flagType returns the schema for the values of a flag. Only a boolean flag may be empty, because the chart passes an
// empty value as a flag without a value.
func flagType(row *flags.Row) node {
	format := flags.FormatOf(row)
	switch {
	case flags.Boolean(row) && refuses(row, "true"):
		return node{"enum": []any{false, "false"}}
	case format.Pattern == "" && refuses(row, "a"):
		return node{"enum": []any{row.Example}}
	case format.Pattern == "":
		return node{"type": []string{"string", "number", "boolean"}, "minLength": 1}
	}
	kinds, pattern := []string{"string"}, format.Pattern+"|"+evaluated
	if flags.Boolean(row) {
		kinds, pattern = []string{"boolean", "string", "null"}, pattern+"|"
	}
	of := node{"pattern": "^(" + pattern + ")$"}
	if format.Number != "" {
		kinds = append(kinds, format.Number)
	}
	if format.Min != format.Max {
		of["minimum"], of["maximum"] = format.Min, format.Max
	}
	of["type"] = kinds
	return of
}

// refuses reports whether the controller does not start with a value of a flag.
func refuses(row *flags.Row, value string) bool {
	_, problems := flags.Apply(settings.Config{}, flags.Given{row.Name: {value}})
	return slices.ContainsFunc(problems, func(p report.Problem) bool { return p.Severity == report.Error })
}

// TestFlagValues checks that the schema accepts each value of a flag with which the controller starts, and that it
// rejects the usual mistakes.
func TestFlagValues(t *testing.T) {
	usual := []string{"abc", "maybe", "yes", "a b", "1x", "10 s", "-", ".", "8443:", "true,false", "1;2", "a/"}
	valid := []string{"true", "F", "0", "1", "+5", "-1", "080", "8443", "65535", "1.5", "1e3", ".5", "1,2,+Inf",
		"0.1, 10", "30s", "1h30m", "1.5m", "/", "a/b", "a/b:80", ":8443", "[::1]:8443", "127.0.0.1:1", "nginx",
		"team in (a)"}
	for i := range flags.Table {
		row := &flags.Table[i]
		schema := flagType(row)
		pattern, _ := schema["pattern"].(string)
		if pattern == "" || row.Ignored != "" {
			continue
		}
		accepts := regexp.MustCompile(pattern).MatchString
		for _, value := range append(valid, usual...) {
			if !refuses(row, value) && !accepts(value) {
				t.Errorf("--%s=%s works, and the schema rejects it", row.Name, value)
			}
		}
		for _, value := range usual {
			if refuses(row, value) && accepts(value) {
				t.Errorf("--%s=%s does not work, and the schema accepts it", row.Name, value)
			}
		}
		if !accepts("$(POD_NAMESPACE)/a") || !accepts("{{ .Values.a }}") || accepts("") != flags.Boolean(row) {
			t.Errorf("--%s: a variable, a template or an empty value is treated wrongly", row.Name)
		}
	}
}

// suggesting returns the schema for an object whose unknown names a template rejects, because the errors of Helm for a
// schema contain no suggestions. Editors show the message.
func suggesting(properties node) node {
	return node{"type": "object", "properties": properties,
		"additionalProperties": node{"deprecationMessage": "The chart rejects this name."}}
}

func strict(properties node) node {
	return node{"type": "object", "properties": properties, "additionalProperties": false}
}

// optionType returns the schema of an option with the given grammar: true for an option without arguments, a list for
// an option with several arguments, and both if the arguments may be omitted. If the arguments are words of a fixed
// set, the schema lists them. The word off may also be false, because YAML reads off without quotes as false.
func optionType(t *testing.T, grammar string) node {
	t.Helper()
	words := wordsOf(grammar)
	switch {
	case grammar == "":
		return types["boolean"]
	case strings.Contains(grammar, "{"):
		return blockType(t, grammar)
	case strings.HasPrefix(grammar, "[") && words != nil:
		return node{"oneOf": []node{types["boolean"], {"enum": words},
			{"type": "array", "items": node{"enum": words}}}}
	case strings.HasPrefix(grammar, "["):
		return node{"type": []string{"boolean", "string", "array", "null"}, "items": node{"type": "string"}}
	case strings.Contains(grammar, "..."):
		return node{"type": []string{"string", "number", "array", "null"},
			"items": node{"type": []string{"string", "number"}}}
	case slices.Contains(words, any("off")):
		return node{"enum": append(words, false, nil)}
	case words != nil:
		return node{"enum": append(words, nil)}
	}
	return types["scalar"]
}

// blocks are the settings in the blocks of options, by the words in their grammar. The content of other blocks is text.
var blocks = map[string]node{
	"<settings...>":  fieldsOf(reflect.TypeFor[settings.NginxMetrics](), "off"),
	"<selection...>": fieldsOf(reflect.TypeFor[settings.DefaultChain](), "chain"),
	"<routes...>":    {"routes": node{"type": "string", "minLength": 1}},
}

// blockType returns the schema of an option with a block. The block is a map of its settings. If the option has a name,
// it may be repeated, so its value is a list of such maps that also have a name.
func blockType(t *testing.T, grammar string) node {
	t.Helper()
	words, block, _ := strings.Cut(grammar, "{")
	content, closing, _ := strings.Cut(strings.TrimSpace(block), " ")
	properties := maps.Clone(blocks[content])
	optional := strings.HasSuffix(closing, "]")
	switch {
	case properties == nil:
		t.Fatalf("there is no schema for the block in %q", grammar)
	case strings.HasPrefix(words, "[off]"):
		one := strict(properties)
		one["type"], one["pattern"] = []string{"boolean", "string", "object", "null"}, "^off$"
		return one
	}
	properties["name"] = node{"type": "string", "minLength": 1}
	items := strict(properties)
	if items["required"] = []string{"name"}; !optional {
		items["required"] = slices.Sorted(maps.Keys(properties))
		return node{"type": []string{"array", "null"}, "items": items}
	}
	return node{"type": []string{"string", "array", "null"}, "items": items}
}

// fieldsOf returns the schemas of the fields of a struct by their names in JSON, without one of them.
func fieldsOf(of reflect.Type, without string) node {
	properties := node{}
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		kind := types["scalar"]
		switch of := field.Type.Kind(); {
		case of == reflect.Bool:
			kind = types["boolean"]
		case of == reflect.Int:
			kind = node{"type": []string{"string", "integer", "null"}}
		case of == reflect.Slice:
			kind = node{"type": []string{"string", "number", "array", "null"},
				"items": node{"type": []string{"string", "number"}}}
		}
		properties[name] = kind
	}
	delete(properties, without)
	return properties
}

// wordsOf returns the words of a grammar such as "a | b" or "[a | b]...". It returns nil for a grammar with other
// arguments.
func wordsOf(grammar string) (words []any) {
	if strings.ContainsAny(grammar, "<{") {
		return nil
	}
	for word := range strings.SplitSeq(strings.Trim(grammar, "[]."), "|") {
		words = append(words, strings.TrimSpace(word))
	}
	return words
}
