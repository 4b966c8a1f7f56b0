package annotations

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected output in docs")

const referenceFile = "../../docs/annotations.md"

func TestReference(t *testing.T) {
	if *update {
		if err := os.WriteFile(referenceFile, []byte(reference()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), reference()); diff != "" {
		t.Errorf("docs/annotations.md is not what the table says; run make generate (-file +table):\n%s", diff)
	}
}

// TestRows holds that every row has what the documentation prints, and an example that works.
func TestRows(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range Table {
		for field, text := range map[string]string{
			"Name": row.Name, "Doc": row.Doc, "Values": row.Values, "Example": row.Example, "Default": row.Default,
		} {
			if text == "" || strings.ContainsAny(text, "\n|") {
				t.Errorf("%s: %s is %q, which cannot be printed", row.Name, field, text)
			}
		}
		if !slices.Contains([]Scope{ScopeIngress, ScopeLocation}, row.Scope) {
			t.Errorf("%s: there is no scope %q", row.Name, row.Scope)
		}
		if !slices.Contains([]Risk{RiskLow, RiskMedium, RiskHigh, RiskCritical}, row.Risk) {
			t.Errorf("%s: there is no risk %q", row.Name, row.Risk)
		}
		if seen[row.Name] {
			t.Errorf("%s is there twice", row.Name)
		}
		seen[row.Name] = true
		if _, problems := Parse(Settings{}, map[string]string{Prefix + row.Name: row.Example}); len(problems) > 0 {
			t.Errorf("%s: the example does not work: %v", row.Name, problems)
		}
	}
}

// TestKnownNames holds that the list is one of names, in order.
func TestKnownNames(t *testing.T) {
	if len(known) < 100 {
		t.Fatalf("the list has %d names, and ingress-nginx has more than 100 annotations", len(known))
	}
	if !slices.IsSorted(known) || len(slices.Compact(slices.Clone(known))) != len(known) {
		t.Error("the names are not sorted, or one is there twice")
	}
}
