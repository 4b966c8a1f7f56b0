package annotations

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestTruth checks the cases in testdata. Each case has one annotation on each line, followed by indented lines with
// the resulting settings and problems. An empty line separates cases. `go test -run TestTruth -update` writes the
// indented lines; read the diff.
func TestTruth(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for text := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n\n") {
				got = append(got, truth(t, text))
			}
			output := strings.Join(got, "\n\n") + "\n"
			if *update {
				if err := os.WriteFile(file, []byte(output), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(data), output); diff != "" {
				t.Errorf("%s (-file +now):\n%s", file, diff)
			}
		})
	}
}

// truth parses the annotations of a case, and returns the case followed by the indented results.
func truth(t *testing.T, text string) string {
	t.Helper()
	all := map[string]string{}
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, " ") {
			continue
		}
		lines = append(lines, line)
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("%q is no annotation", line)
		}
		all[keyOf(key)] = strings.TrimPrefix(value, " ")
	}
	defaults := Settings{AvailableChains: []string{"audit", "waf"}}
	defaults.Asked.Tracing.Collected = true
	settings, problems := Parse(defaults, all)
	settings.AvailableChains, settings.Asked = nil, Asked{}
	lines = append(lines, flatten("  ", reflect.ValueOf(*settings))...)
	for _, p := range problems {
		name := strings.TrimSuffix(p.Field[strings.LastIndex(p.Field, "/")+1:], "]")
		lines = append(lines, fmt.Sprintf("  %s %s: %s", p.Severity, name, p.Message))
	}
	return strings.Join(lines, "\n")
}

func keyOf(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return Prefix + name
}

// flatten returns one line for each field of a value that is not zero, with the path of the field.
func flatten(name string, v reflect.Value) []string {
	switch {
	case v.IsZero():
		return nil
	case v.Kind() == reflect.Pointer:
		return flatten(name, v.Elem())
	case v.Kind() != reflect.Struct || v.Type() == reflect.TypeFor[ir.Name]():
		return []string{fmt.Sprintf("%s = %v", name, v.Interface())}
	}
	var lines []string
	for i := range v.NumField() {
		field := v.Type().Field(i).Name
		if strings.TrimSpace(name) != "" {
			field = "." + field
		}
		lines = slices.Concat(lines, flatten(name+field, v.Field(i)))
	}
	return lines
}
