package engine

import (
	"maps"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
)

// TestCountVerdicts checks that each problem counts once, and each Ingress without endpoints once.
func TestCountVerdicts(t *testing.T) {
	none := report.Problem{Severity: report.Info, Reason: report.NoEndpoints}
	invalid := report.Problem{Severity: report.Error, Reason: report.InvalidAnnotation}
	counts, without := countVerdicts(&report.Report{Verdicts: []*report.Verdict{
		{Object: ir.Ref{Kind: "Ingress", Namespace: "a", Name: "one"}, Problems: []report.Problem{none, none, invalid}},
		{Object: ir.Ref{Kind: "Ingress", Namespace: "a", Name: "two"}, Problems: []report.Problem{none}},
		{Object: ir.Ref{Kind: "Ingress", Namespace: "b", Name: "one"}, Problems: []report.Problem{invalid}},
		{Object: ir.Ref{Kind: "ConfigMap", Namespace: "a", Name: "tcp"}, Problems: []report.Problem{none}},
	}})
	wantCounts := map[problemKind]int{
		{"Ingress", report.Info, report.NoEndpoints}: 3, {"Ingress", report.Error, report.InvalidAnnotation}: 2,
		{"ConfigMap", report.Info, report.NoEndpoints}: 1,
	}
	if !maps.Equal(counts, wantCounts) || !maps.Equal(without, map[string]int{"a": 2}) {
		t.Errorf("the counts are %v and %v, want %v and a: 2", counts, without, wantCounts)
	}
}
