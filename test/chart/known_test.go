package chart

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// known is a row of known-values.txt.
type known struct {
	name, kind string
	path       []string
	// ignored is the sentence that NOTES prints, or empty.
	ignored string
}

// readKnown returns the rows: those with a default in ingress-nginx's chart, and the others.
func readKnown(t *testing.T) (theirs, more []known) {
	t.Helper()
	text, err := os.ReadFile(chartFolder + "/known-values.txt")
	if err != nil {
		t.Fatal(err)
	}
	first, second, found := strings.Cut(string(text), "\n#\n# The second group")
	if !found {
		t.Fatal("known-values.txt has no second part")
	}
	return knownIn(t, first), knownIn(t, second)
}

func knownIn(t *testing.T, text string) (all []known) {
	t.Helper()
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 3 || strings.HasPrefix(line, "#") || strings.HasPrefix(line, " ") {
			continue
		}
		k := known{name: words[0], kind: words[1], path: splitPath(words[0])}
		if words[2] == "ignored" {
			k.ignored = strings.Join(words[3:], " ")
		} else if words[2] != "honoured" {
			t.Fatalf("%s is neither honoured nor ignored", words[0])
		}
		all = append(all, k)
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

// trial is what testdata/known.yaml says of the paths that begin with its own: what else has to be set, and the value
// to try, where any of its type does not do.
type trial struct {
	Path  string `json:"path"`
	With  values `json:"with"`
	Value any    `json:"value"`
}

// TestKnownValues sets each value that ingress-nginx's chart knows to another one: the manifests change, or NOTES says
// why not.
func TestKnownValues(t *testing.T) {
	theirs, more := readKnown(t)
	if len(theirs) != 373 {
		t.Errorf("there are %d values, want 373", len(theirs))
	}
	var trials []trial
	readYAML(t, "testdata/known.yaml", &trials)
	defaults := readValues(t, chartFolder+"/values.yaml")
	without := map[string]rendered{}
	for _, k := range append(theirs, more...) {
		with, value := k.trial(trials, defaults)
		key := fmt.Sprint(with)
		if _, done := without[key]; !done {
			without[key] = mustRender(t, with)
		}
		before := without[key]
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			k.check(t, before, with, value)
		})
	}
}

func (k *known) check(t *testing.T, before rendered, with values, value any) {
	t.Helper()
	after, err := render(together(with, at(k.path, value)), install{})
	switch {
	case err != nil:
		t.Errorf("%s: %v", k.name, err)
	case k.ignored != "" && !strings.Contains(after.notes, k.ignored+"."):
		t.Errorf("%s: NOTES does not say that it is ignored: %s", k.name, k.ignored)
	case k.ignored != "" && after.manifest != before.manifest:
		t.Errorf("%s is ignored, and %v changes the manifests", k.name, value)
	case k.ignored == "" && after.manifest == before.manifest:
		t.Errorf("%s: %v changes nothing", k.name, value)
	case k.ignored == "" && strings.Contains(after.notes, "The chart does not know these values"):
		t.Errorf("%s: NOTES does not know it:\n%s", k.name, after.notes)
	}
}

// trial returns the values that a path is tried with, and another value for it than the default.
func (k *known) trial(trials []trial, defaults values) (with values, value any) {
	for _, row := range trials {
		if row.Path != k.name && !strings.HasPrefix(k.name, row.Path+".") {
			continue
		}
		with = together(with, row.With)
		if row.Path == k.name && row.Value != nil {
			value = row.Value
		}
	}
	if value == nil {
		was, _ := find(together(defaults, with), k.path)
		value = k.other(was)
	}
	return with, value
}

// other returns a value of the type that is not the default.
func (k *known) other(was any) any {
	number := 7.0
	if n, ok := was.(float64); ok {
		number += n
	}
	other := map[string]any{
		"string": "another", "integer": number, "scalar": number, "boolean": !reflect.DeepEqual(was, true),
		"any":   "another",
		"array": []any{"another"}, "object": values{"another": "one"}, "strings": values{"another": "one"},
	}
	return other[k.kind]
}
