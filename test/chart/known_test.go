package chart

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// known is one row of known-values.txt.
type known struct {
	name, kind string
	path       []string
	// ignored is the sentence in NOTES if the value has no effect. Otherwise it is empty.
	ignored string
}

// readKnown returns the rows. theirs have a default in the chart of ingress-nginx, and more do not.
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
		if words[2] == "ignored" || words[2] == "unguarded" {
			k.ignored = strings.Join(words[3:], " ")
		} else if words[2] != "honoured" {
			t.Fatalf("%s is neither honoured nor ignored", words[0])
		}
		all = append(all, k)
	}
	return all
}

// splitPath returns the names in a path. A label of nodes contains dots and is one name.
func splitPath(path string) []string {
	before, label := strings.CutSuffix(path, ".kubernetes.io/os")
	names := strings.Split(before, ".")
	if label {
		names = append(names, "kubernetes.io/os")
	}
	return names
}

// trial is an entry of testdata/known.yaml for the paths with a prefix: the other values that must be set, and the
// value to try if any value of the right type would not do.
type trial struct {
	Path  string `json:"path"`
	With  values `json:"with"`
	Value any    `json:"value"`
}

// TestKnownValues changes each value that the chart of ingress-nginx has, and checks that either the manifests change,
// or NOTES explains why they do not.
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

// trial returns the values to set together with the path, and a value for the path that differs from its default.
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

// other returns a value of the right type that differs from the default.
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
