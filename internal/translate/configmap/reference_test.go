package configmap

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

var update = flag.Bool("update", false, "rewrite the expected output in docs")

func TestReference(t *testing.T) {
	fixture.Printed(t, "../../../docs/configmap.md", map[string]any{
		"Rows": Table, "Tuning": withFate(fateTuning), "Dead": withFate(fateDead),
		"Never": withFate(fateNever), "Later": withFate(fateLater), "Notes": notes,
	}, *update)
	fixture.Generated(t, "../../../charts/k8singress/files/keys.txt", keysOfChart(), *update)
}

// keysOfChart returns the table of keys from which the NOTES of the chart find keys without an effect. Each line
// contains a key, "works" or its fate, and a note.
func keysOfChart() string {
	var text strings.Builder
	text.WriteString("# The keys of the ConfigMap, printed from the tables in internal/translate/configmap by " +
		"`make generate`.\n")
	for i := range Table {
		text.WriteString(Table[i].Name + " works\n")
	}
	for _, name := range names {
		if Table.Find(name) == nil {
			note := strings.TrimPrefix(notes[name], ": ")
			text.WriteString(strings.TrimSpace(name+" "+string(fates[name])+" "+note) + "\n")
		}
	}
	return text.String()
}

// TestRows checks that every row has the texts that the documentation prints, and a valid example that differs from the
// default.
func TestRows(t *testing.T) {
	seen := map[string]bool{}
	for i := range Table {
		row := &Table[i]
		for field, text := range map[string]string{
			"Name": row.Name, "Doc": row.Doc, "Values": row.Values, "Example": row.Example, "Default": row.Default,
		} {
			if text == "" || field != "Doc" && strings.ContainsAny(text, "\n|") {
				t.Errorf("%s: %s is %q, which cannot be printed", row.Name, field, text)
			}
		}
		if seen[row.Name] {
			t.Errorf("%s is there twice", row.Name)
		}
		seen[row.Name] = true
		for _, fault := range validation.IsConfigMapKey(row.Name) {
			t.Errorf("%s is not a key of a ConfigMap: %s", row.Name, fault)
		}
		if slices.Contains(names, row.Name) == strings.HasPrefix(row.Doc, notOfNginx) {
			t.Errorf("%s: Doc must begin with %q if ingress-nginx does not have the key, and only then", row.Name,
				notOfNginx)
		}
		// Without this key, other keys warn that every client is trusted.
		data := map[string]string{"proxy-real-ip-cidr": "10.0.0.0/8"}
		data[row.Name] = row.Example
		for _, p := range parsed(data) {
			if !strings.HasPrefix(p.Message, "the setting has no effect") {
				t.Errorf("%s: the example does not work: %v", row.Name, p)
			}
		}
	}
}

// TestKnownKeys checks that the list of the names of all ingress-nginx keys is complete and sorted, and that each key
// has one of the defined fates.
func TestKnownKeys(t *testing.T) {
	if len(names) < 200 {
		t.Fatalf("the list has %d names, and ingress-nginx has more than 200 keys", len(names))
	}
	if !slices.IsSorted(names) || len(fates) != len(names) {
		t.Error("the names are not sorted, or one is there twice")
	}
	for name, f := range fates {
		if !slices.Contains([]fate{fateTuning, fateDead, fateNever, fateLater}, f) {
			t.Errorf("%s: there is no fate %q", name, f)
		}
	}
}

// withFate returns the names of the keys with the given fate that are not in the table.
func withFate(f fate) []string {
	return slices.DeleteFunc(slices.Clone(names),
		func(name string) bool { return fates[name] != f || Table.Find(name) != nil })
}
