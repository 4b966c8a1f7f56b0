package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
)

// under returns a parent that is a listener of a Gateway.
func under(gateway, listener string, conditions ...report.Condition) report.Parent {
	return report.Parent{
		ParentRef: report.ParentRef{Object: ir.Ref{Kind: "Gateway", Namespace: "a", Name: gateway},
			SectionName: listener},
		Conditions: conditions,
	}
}

func condition(kind string, status report.ConditionStatus, reason report.Reason) report.Condition {
	return report.Condition{Type: kind, Status: status, Reason: reason, ObservedGeneration: 3}
}

func with(parents ...report.Parent) *report.Verdict {
	v := verdict("web")
	v.Parents = parents
	return v
}

// TestLaterStagesRefineConditions checks that a condition from applying a route replaces the one from its translation.
func TestLaterStagesRefineConditions(t *testing.T) {
	accepted, programmed := condition("Accepted", report.True, "Accepted"),
		condition("Programmed", report.True, "Programmed")
	failed := condition("Programmed", report.False, "Invalid")
	v := with(under("one", "http", accepted, programmed), under("one", "https", accepted), under("two", ""))
	r := reportOf(v)
	got := r.With([]*report.Verdict{with(under("one", "http", failed), under("two", "", accepted),
		under("three", "", accepted))})
	want := reportOf(with(
		under("one", "http", accepted, failed), under("one", "https", accepted), under("two", "", accepted),
		under("three", "", accepted)))
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	before := with(under("one", "http", accepted, programmed), under("one", "https", accepted), under("two", ""))
	if d := cmp.Diff(before, v); d != "" {
		t.Errorf("the verdict before was changed: %s", d)
	}
	if d := cmp.Diff(want.Verdicts[0].Parents,
		got.With([]*report.Verdict{verdict("web", "a problem")}).Verdicts[0].Parents); d != "" {
		t.Errorf("a problem changes the conditions: %s", d)
	}
}

// TestEqualComparesConditions checks that verdicts with another observed generation are not equal, so that the status
// is written again.
func TestEqualComparesConditions(t *testing.T) {
	accepted := condition("Accepted", report.True, "Accepted")
	newer := accepted
	newer.ObservedGeneration++
	v := with(under("one", "http", accepted))
	for name, test := range map[string]struct {
		other *report.Verdict
		want  bool
	}{
		"the same":           {with(under("one", "http", accepted)), true},
		"another generation": {with(under("one", "http", newer)), false},
		"another listener":   {with(under("one", "https", accepted)), false},
		"another parent":     {with(under("one", "http", accepted), under("two", "http", accepted)), false},
		"no condition":       {with(under("one", "http")), false},
		"no parent":          {with(), false},
	} {
		if got := v.Equal(test.other); got != test.want {
			t.Errorf("%s: equal is %v", name, got)
		}
	}
	if changed := report.Changed(reportOf(v), reportOf(with(under("one", "http", newer)))); len(changed) != 1 {
		t.Errorf("%d verdicts changed with the generation", len(changed))
	}
}

func TestStatedLeavesOutParentsWithoutConditions(t *testing.T) {
	stated := under("two", "", condition("Accepted", report.False, "NotAllowedByListeners"))
	if d := cmp.Diff([]report.Parent{stated}, with(under("one", ""), stated).Stated()); d != "" {
		t.Error(d)
	}
}
