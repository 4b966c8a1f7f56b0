package annotations

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

var update = flag.Bool("update", false, "rewrite the expected output in docs")

func TestReference(t *testing.T) {
	var rows, ignored []*Annotation
	for i := range Table {
		if row := &Table[i]; row.Ignored != "" {
			ignored = append(ignored, row)
		} else {
			rows = append(rows, row)
		}
	}
	unsupported := slices.DeleteFunc(slices.Clone(known), func(name string) bool {
		return Table.Find(name) != nil
	})
	fixture.Printed(t, "../../../docs/annotations.md", map[string]any{
		"Rows": rows, "Ignored": ignored, "Unsupported": unsupported, "Phases": phases,
	}, *update)
}

// TestRows checks that every row has the texts that the documentation prints, and a valid example.
func TestRows(t *testing.T) {
	seen := map[string]bool{}
	for i := range Table {
		row := &Table[i]
		texts := map[string]string{"Name": row.Name, "Ignored": row.Ignored}
		if row.Ignored == "" {
			texts = map[string]string{
				"Name": row.Name, "Doc": row.Doc, "Values": row.Values, "Example": row.Example, "Default": row.Default,
			}
			checkRow(t, row)
		}
		for field, text := range texts {
			if text == "" || field != "Doc" && strings.ContainsAny(text, "\n|") {
				t.Errorf("%s: %s is %q, which cannot be printed", row.Name, field, text)
			}
		}
		if !slices.Contains([]option.Risk{RiskLow, RiskMedium, RiskHigh, RiskCritical}, row.Risk) {
			t.Errorf("%s: there is no risk %q", row.Name, row.Risk)
		}
		if seen[row.Name] {
			t.Errorf("%s is there twice", row.Name)
		}
		seen[row.Name] = true
		if !strings.HasPrefix(row.Name, OwnPrefix) && !slices.Contains(known, row.Name) {
			t.Errorf("%s is not among the annotations of ingress-nginx", row.Name)
		}
	}
}

// checkRow checks that the example of a row is valid. It may have no effect on its own, which must cause a warning. The
// example of stream-snippet never has an effect.
func checkRow(t *testing.T, row *Annotation) {
	t.Helper()
	if !slices.Contains([]option.Scope{ScopeIngress, ScopeLocation}, row.Scope) {
		t.Errorf("%s: there is no scope %q", row.Name, row.Scope)
	}
	defaults := Settings{
		AvailableChains: strings.Split(chainNames.Example, ","), Gate: Gate{Level: RiskCritical, Snippets: true},
	}
	_, problems := Parse(defaults, map[string]string{Key(row.Name): row.Example})
	for _, p := range problems {
		if p.Severity == report.Error || row.Check == nil && row.Name != streamSnippet.Name {
			t.Errorf("%s: the example does not work: %v", row.Name, p)
		}
	}
}

// TestKnownNames checks that the list of the names of all ingress-nginx annotations is complete and sorted.
func TestKnownNames(t *testing.T) {
	if len(known) < 100 {
		t.Fatalf("the list has %d names, and ingress-nginx has more than 100 annotations", len(known))
	}
	if !slices.IsSorted(known) || len(slices.Compact(slices.Clone(known))) != len(known) {
		t.Error("the names are not sorted, or one is there twice")
	}
}
