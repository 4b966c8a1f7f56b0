package chart

import (
	"regexp"
	"strings"
	"testing"
)

// namedRule matches what NOTES say about the rule of TestRulesFindSeries.
var namedRule = regexp.MustCompile(`(?m)^  Named: (.*(?:\n    .*)?)$`)

// TestRulesFindSeries checks which rules NOTES report because other values remove their series, or because no series
// has a value of a label.
func TestRulesFindSeries(t *testing.T) {
	var cases []struct {
		Expr   string `json:"expr"`
		Values values `json:"values"`
		Says   string `json:"says"`
	}
	readYAML(t, "testdata/rules.yaml", &cases)
	for _, c := range cases {
		rules := values{"enabled": true, "rules": []any{values{"alert": "Named", "expr": c.Expr}}}
		notes := mustRender(t, together(c.Values,
			at([]string{"controller", "metrics"}, values{"enabled": true, "prometheusRule": rules}))).notes
		says := ""
		if found := namedRule.FindStringSubmatch(notes); found != nil {
			says = found[1]
		}
		if says != c.Says {
			t.Errorf("%s with %v: NOTES say\n%s\nand not\n%s", c.Expr, c.Values, says, c.Says)
		}
	}
}

// TestOwnAlertsFindSeries checks that NOTES report alerts of the chart whose series the values remove, and a
// PrometheusRule that the chart does not create.
func TestOwnAlertsFindSeries(t *testing.T) {
	with := values{
		"controller": values{"metrics": values{"enabled": true, "prometheusRule": values{"enabled": true}}},
		"k8singress": values{"alerts": true},
	}
	if notes := mustRender(t, with).notes; strings.Contains(notes, "alerts may never fire") {
		t.Error(notes)
	}
	without := values{"k8singress": values{"options": values{"disable_route_metrics": true}}}
	notes := mustRender(t, together(with, without)).notes
	if !strings.Contains(notes, "\n  K8singressErrors: k8singress_route_requests_total\n") ||
		strings.Contains(notes, "K8singressPanics") {
		t.Error(notes)
	}
	off := together(with, values{"controller": values{"metrics": values{"enabled": false}}})
	if notes := mustRender(t, off).notes; !strings.Contains(notes, "There is no PrometheusRule, because") {
		t.Error(notes)
	}
}
