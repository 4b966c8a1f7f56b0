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
// the resulting settings and problems. An empty line separates cases. After the settings come the values in Asked from
// which Finish derives none of them: filters or package ingress read these values. `make golden` writes the indented
// lines; read the diff.
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
	defaults := Settings{
		AvailableChains: []string{"audit", "waf"}, Gate: Gate{Level: RiskCritical, Snippets: true},
	}
	defaults.Asked.Tracing.Collected = true
	settings, problems := Parse(defaults, all)
	without := append(flatten(defaults), underived(defaults)...)
	for _, line := range append(flatten(finished(*settings)), underived(*settings)...) {
		if !slices.Contains(without, line) {
			lines = append(lines, line)
		}
	}
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

// finished returns the settings that Finish derives, without the values from which it derives them.
func finished(s Settings) Settings {
	s.Finish()
	s.Asked = Asked{}
	return s
}

// flatten returns one line for each setting that is not zero.
func flatten(s Settings) (lines []string) {
	eachLeaf("", reflect.ValueOf(s), func(name string, v reflect.Value) { lines = append(lines, lineOf(name, v)) })
	return lines
}

// underived returns one line for each value in Asked without which Finish derives the same settings.
func underived(s Settings) (lines []string) {
	want := finished(s)
	eachLeaf("Asked", reflect.ValueOf(&s.Asked).Elem(), func(name string, v reflect.Value) {
		line, value := lineOf(name, v), reflect.ValueOf(v.Interface())
		v.SetZero()
		if reflect.DeepEqual(finished(s), want) {
			lines = append(lines, line)
		}
		v.Set(value)
	})
	return lines
}

// eachLeaf calls do for each field of a value that is not zero, with the path of the field. A pointer to a zero value
// is not zero.
func eachLeaf(name string, v reflect.Value, do func(name string, v reflect.Value)) {
	switch {
	case v.IsZero():
	case v.Kind() == reflect.Pointer && !v.Elem().IsZero():
		eachLeaf(name, v.Elem(), do)
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[ir.Name]():
		for i := range v.NumField() {
			eachLeaf(strings.TrimPrefix(name+"."+v.Type().Field(i).Name, "."), v.Field(i), do)
		}
	default:
		do(name, v)
	}
}

// lineOf returns the line for a field. A pointer to a struct without a setting is shown as {}.
func lineOf(name string, v reflect.Value) string {
	if v = reflect.Indirect(v); v.Kind() == reflect.Struct && v.IsZero() {
		return "  " + name + " = {}"
	}
	return fmt.Sprintf("  %s = %v", name, v.Interface())
}
