package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestNulls sets each value that the schema allows to be null, and checks that the chart renders. Helm removes the
// default of such a value, so templates cannot rely on defaults.
func TestNulls(t *testing.T) {
	var trials []trial
	readYAML(t, "testdata/known.yaml", &trials)
	defaults := readValues(t, chartFolder+"/values.yaml")
	paths := nullable(readValues(t, chartFolder+"/values.schema.json"), nil)
	if len(paths) < 400 {
		t.Fatalf("the schema allows only %d values to be null", len(paths))
	}
	for _, path := range paths {
		name := strings.Join(path, ".")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := known{name: name, path: path}
			with, _ := k.trial(trials, defaults)
			if _, err := render(together(with, at(path, nil)), install{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// nullable returns the paths of the values below a path that may be null. Helm removes a value that is null and has a
// default before it validates the values, so an object may be null unless the schema requires it.
func nullable(schema values, path []string) (all [][]string) {
	properties, _ := schema["properties"].(values)
	required, _ := schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		below, part := append(slices.Clone(path), name), properties[name].(values)
		kinds, _ := part["type"].([]any)
		words, _ := part["enum"].([]any)
		object := part["type"] == "object" && !slices.Contains(required, any(name))
		if object || slices.Contains(kinds, any("null")) || slices.Contains(words, any(nil)) {
			all = append(all, below)
		}
		all = append(all, nullable(part, below)...)
	}
	return all
}
