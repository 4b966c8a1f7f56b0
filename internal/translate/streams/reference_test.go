package streams

import (
	"flag"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

var update = flag.Bool("update", false, "rewrite the expected output in docs")

func TestReference(t *testing.T) {
	fixture.Printed(t, "../../../docs/service-annotations.md", map[string]any{"Rows": Table}, *update)
}

// TestRows checks that every row has the texts that the documentation prints, and a valid example. The example may have
// no effect on its own, which must cause a warning.
func TestRows(t *testing.T) {
	seen := map[string]bool{}
	for i := range Table {
		row := &Table[i]
		for name, text := range map[string]string{
			"Name": row.Name, "Doc": row.Doc, "Values": row.Values, "Example": row.Example, "Default": row.Default,
		} {
			if text == "" || name != "Doc" && strings.ContainsAny(text, "\n|") {
				t.Errorf("%s: %s is %q, which cannot be printed", row.Name, name, text)
			}
		}
		if seen[row.Name] {
			t.Errorf("%s is given twice", row.Name)
		}
		seen[row.Name] = true
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "db",
			Annotations: map[string]string{row.Name: row.Example}}}
		settings, problems := Parse(ir.StreamPolicy{}, service)
		for _, p := range problems {
			if p.Severity == report.Error || row.Check == nil {
				t.Errorf("%s: the example does not work: %v", row.Name, p)
			}
		}
		if settings.Closed {
			t.Errorf("%s: the example closes the ports", row.Name)
		}
	}
}
