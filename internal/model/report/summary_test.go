package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/report"
)

// summary returns a summary of problems with certificates.
func summary(message string) report.Problem {
	return report.Problem{Severity: report.Warning, Reason: report.ACMEFailed, Field: "spec.tls", Message: message,
		Summary: true}
}

// about returns a verdict with the given problems.
func about(name string, problems ...report.Problem) *report.Verdict {
	v := verdict(name)
	v.Problems = problems
	return v
}

// TestSummariesKeepTheirMessage checks that only the message of a known summary is taken from the report before.
func TestSummariesKeepTheirMessage(t *testing.T) {
	plain := func(message string) report.Problem {
		p := summary(message)
		p.Summary = false
		return p
	}
	pending := summary("9 pending")
	pending.Reason = report.CertificatePending
	before := reportOf(about("a", plain("x"), summary("1 more")), about("b", summary("1 more")),
		about("c", plain("1 more")), about("gone", summary("1 more")))
	now := reportOf(about("a", plain("y"), summary("2 more"), pending), about("b", summary("2 more")),
		about("c", summary("2 more")), about("new", summary("2 more")))
	copied := reportOf(about("a", plain("y"), summary("2 more"), pending), about("b", summary("2 more")),
		about("c", summary("2 more")), about("new", summary("2 more")))
	got := now.WithSummariesOf(before)
	want := reportOf(about("a", plain("y"), summary("1 more"), pending), about("b", summary("1 more")),
		about("c", summary("2 more")), about("new", summary("2 more")))
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(copied, now); d != "" {
		t.Errorf("the report was changed: %s", d)
	}
	if got.Verdicts[1] != before.Verdicts[1] {
		t.Error("an unchanged verdict is not the same pointer as before")
	}
	if got := now.WithSummariesOf(now); got != now {
		t.Error("a report without differences is another report")
	}
	other := reportOf(about("a", plain("z"), summary("1 more")))
	if got := other.WithSummariesOf(before); got != other {
		t.Error("a report with the same summaries is another report")
	}
}
