package configmap

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/fixture"
)

var update = flag.Bool("update", false, "rewrite the expected output in docs")

func TestReference(t *testing.T) {
	fixture.Generated(t, "../../docs/configmap.md", reference(), *update)
}

// TestRows holds that every row has what the documentation prints, and an example that works and is not the default.
func TestRows(t *testing.T) {
	seen := map[string]bool{}
	for i := range Table {
		row := &Table[i]
		for field, text := range map[string]string{
			"Name": row.Name, "Doc": row.Doc, "Values": row.Values, "Example": row.Example, "Default": row.Default,
		} {
			if text == "" || strings.ContainsAny(text, "\n|") {
				t.Errorf("%s: %s is %q, which cannot be printed", row.Name, field, text)
			}
		}
		if seen[row.Name] {
			t.Errorf("%s is there twice", row.Name)
		}
		seen[row.Name] = true
		if slices.Contains(names, row.Name) == row.Own {
			t.Errorf("%s is among the keys of ingress-nginx, or not: %v", row.Name, !row.Own)
		}
		for _, p := range parsed(map[string]string{row.Name: row.Example}) {
			if !strings.HasPrefix(p.Message, "this has no effect, because") {
				t.Errorf("%s: the example does not work: %v", row.Name, p)
			}
		}
	}
}

// TestKnownKeys holds that the list is one of names, in order, and of which something becomes.
func TestKnownKeys(t *testing.T) {
	if len(names) < 200 {
		t.Fatalf("the list has %d names, and ingress-nginx has more than 200 keys", len(names))
	}
	if !slices.IsSorted(names) || len(fates) != len(names) {
		t.Error("the names are not sorted, or one is there twice")
	}
	for name, f := range fates {
		if !slices.Contains([]fate{fateTuning, fateGuard, fateDead, fateLater}, f) {
			t.Errorf("%s: there is no fate %q", name, f)
		}
	}
}
