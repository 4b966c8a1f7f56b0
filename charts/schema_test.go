package charts

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/fixture"
)

var update = flag.Bool("update", false, "rewrite values.schema.json")

// node is a JSON schema, or a part of one.
type node = map[string]any

// types are the words of known-values.txt. Every value may be null, by which Helm takes a default away.
var types = map[string]node{
	"string":  {"type": []string{"string", "null"}},
	"integer": {"type": []string{"integer", "null"}},
	"boolean": {"type": []string{"boolean", "null"}},
	"scalar":  {"type": []string{"string", "number", "null"}},
	"array":   {"type": []string{"array", "null"}},
	"object":  {"type": []string{"object", "null"}},
	"strings": {"type": []string{"object", "null"}, "additionalProperties": node{"type": []string{"string", "number", "boolean", "null"}}},
	"any":     {},
}

// elsewhere are the options that values of ingress-nginx's chart stand for: the flags that these become would count before them.
var elsewhere = []string{
	"kubeconfig", "manifests", "source", "ingress_class", "controller_name", "watch_ingress_without_class", "namespaces", "namespace_selector",
	"http", "https", "health", "health_path", "health_ready", "health_metrics", "configmap", "tcp_services", "udp_services", "publish_service",
	"election_id", "election_namespace", "election_ttl", "election", "ingress_class_by_name", "publish_nodes", "http3",
	"issuer", "chain", "host_owner",
}

// TestSchema holds that values.schema.json has what known-values.txt says, and the options of the Caddyfile.
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
	root["properties"].(node)["k8singress"] = own(t)
	text, err := json.MarshalIndent(root, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	fixture.Generated(t, "k8singress/values.schema.json", string(text)+"\n", *update)
}

// rows are the lines of a table, each with its words.
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

// splitPath returns the names of a path. One label of nodes has a dot in its name.
func splitPath(path string) []string {
	before, label := strings.CutSuffix(path, ".kubernetes.io/os")
	names := strings.Split(before, ".")
	if label {
		names = append(names, "kubernetes.io/os")
	}
	return names
}

// within returns the properties of an object, whose type it fills in.
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

// add writes the type of a path into a schema, and returns its part of it.
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

// own is the part that is ours, where no other names are let through.
func own(t *testing.T) node {
	t.Helper()
	options := node{}
	for _, words := range rows(t, "k8singress/files/options.txt") {
		if !slices.Contains(elsewhere, words[0]) {
			options[words[0]] = optionType(strings.Join(words[1:], " "))
		}
	}
	text := types["string"]
	texts := node{"type": "array", "items": node{"type": "string"}}
	return strict(node{
		"options": strict(options),
		"chains":  node{"type": "object", "additionalProperties": node{"type": "string"}}, "issuers": texts,
		"hostOwners": node{"type": "object", "additionalProperties": texts},
		"storage":    text, "admin": node{"type": "string"}, "globalOptions": text, "caddyfile": text,
		"volumes": strict(node{"data": node{"type": "string"}, "tmp": node{"type": "string"}}),
	})
}

func strict(properties node) node {
	return node{"type": "object", "properties": properties, "additionalProperties": false}
}

// optionType is the type of an option by its grammar: true for one without a word, and a list where there may be several.
func optionType(grammar string) node {
	switch {
	case grammar == "":
		return types["boolean"]
	case strings.Contains(grammar, "..."):
		return node{"type": []string{"string", "number", "array", "null"}, "items": node{"type": []string{"string", "number"}}}
	}
	return types["scalar"]
}
