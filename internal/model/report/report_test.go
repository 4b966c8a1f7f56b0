package report_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
)

// verdict returns a verdict on an Ingress of namespace a, with one problem for each message.
func verdict(name string, messages ...string) *report.Verdict {
	v := &report.Verdict{Object: ir.Ref{Kind: "Ingress", Namespace: "a", Name: name}}
	for _, m := range messages {
		v.Problems = append(v.Problems, report.Problem{Severity: report.Error, Reason: report.InvalidPath, Message: m})
	}
	return v
}

func reportOf(verdicts ...*report.Verdict) *report.Report { return &report.Report{Verdicts: verdicts} }

func TestGet(t *testing.T) {
	r := reportOf(verdict("a"), verdict("c"))
	if v := r.Get(verdict("c").Object); v != r.Verdicts[1] {
		t.Errorf("got %+v", v)
	}
	if v := r.Get(verdict("b").Object); v != nil {
		t.Errorf("got %+v for an object without verdict", v)
	}
	if v := reportOf().Get(verdict("b").Object); v != nil {
		t.Errorf("got %+v from an empty report", v)
	}
}

func TestWithAddsProblemsToTheirObjects(t *testing.T) {
	old := verdict("c", "one")
	// The spare capacity would let With write into the array of the old verdict.
	old.Problems = slices.Grow(old.Problems, 4)
	r := reportOf(verdict("a"), old)
	got := r.With([]*report.Verdict{verdict("d", "new"), verdict("c", "two"), verdict("b", "new"),
		verdict("c", "three")})
	other := r.With([]*report.Verdict{verdict("c", "other")})
	want := verdict("c", "one", "two", "three")
	if d := cmp.Diff(reportOf(verdict("a"), verdict("b", "new"), want, verdict("d", "new")), got); d != "" {
		t.Error(d)
	}
	if p := other.Verdicts[1].Problems; len(p) != 2 || p[1].Message != "other" {
		t.Errorf("the other report has %+v", p)
	}
	if len(r.Verdicts) != 2 || len(old.Problems) != 1 {
		t.Error("the report before was changed")
	}
	if r.With(nil) != r {
		t.Error("a report with nothing more is another report")
	}
}

func TestChanged(t *testing.T) {
	kept := verdict("b", "same pointer")
	before := reportOf(verdict("a", "one"), kept, verdict("c", "equal"), verdict("d", "gone"),
		verdict("f", "old words"))
	now := reportOf(verdict("a", "one", "two"), kept, verdict("c", "equal"), verdict("e", "new"),
		verdict("f", "new words"), verdict("g"))
	var names []string
	for _, v := range report.Changed(before, now) {
		names = append(names, v.Object.Name)
	}
	if d := cmp.Diff([]string{"a", "e", "f", "g"}, names); d != "" {
		t.Error(d)
	}
	if c := report.Changed(now, now); len(c) != 0 {
		t.Errorf("%d verdicts differ from themselves", len(c))
	}
	if c := report.Changed(reportOf(), now); len(c) != len(now.Verdicts) {
		t.Errorf("%d of %d verdicts are new to an empty report", len(c), len(now.Verdicts))
	}
}

func TestAccepted(t *testing.T) {
	v := verdict("a")
	v.Problems = []report.Problem{{Severity: report.Warning}, {Severity: report.Info}}
	if !v.Accepted() {
		t.Error("warnings make an object not accepted")
	}
	if verdict("a", "an error").Accepted() {
		t.Error("an object with an error is accepted")
	}
}

func TestCompareOrdersByKindFirst(t *testing.T) {
	refs := []ir.Ref{{Kind: "Service", Namespace: "a"}, {Kind: "Ingress", Namespace: "b", Name: "a"},
		{Kind: "Ingress", Namespace: "a", Name: "z"}}
	slices.SortFunc(refs, report.Compare)
	if refs[0].Name != "z" || refs[1].Name != "a" {
		t.Errorf("sorted: %v", refs)
	}
}
