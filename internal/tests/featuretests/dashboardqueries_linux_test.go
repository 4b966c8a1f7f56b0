package featuretests

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// readQueries reads the expressions that TestDashboards evaluates. Expressions of our own dashboard and alerts are in
// the chart, and each must have an expected value.
func readQueries(t *testing.T) (sources []sourceOfQueries) {
	t.Helper()
	text, err := os.ReadFile("testdata/dashboards.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(text, &sources)
	}
	if err != nil {
		t.Fatal(err)
	}
	ours, variables := ourQueries(t)
	for _, s := range sources {
		if s.Selected != nil && !slices.EqualFunc(s.Variables, variables, func(a variable, query string) bool {
			return a.Query == query
		}) {
			t.Errorf("%s has the variables %q", s.Source, variables)
		}
		for _, q := range s.Expressions {
			if q.Panel == "" {
				continue
			}
			left := ours[q.Panel]
			if len(left) == 0 {
				t.Fatalf("%s has no such expression: %q", s.Source, q.Panel)
			}
			q.Expr, ours[q.Panel] = left[0], left[1:]
		}
	}
	for name, left := range ours {
		if len(left) > 0 {
			t.Errorf("testdata/dashboards.yaml has no value for %q: %q", name, left)
		}
	}
	return sources
}

// ourQueries returns the expressions of our dashboard and alerts, by the title of the panel or the name of the alert,
// and the queries of the dashboard's variables.
func ourQueries(t *testing.T) (found map[string][]string, variables []string) {
	t.Helper()
	var dashboard struct {
		Templating struct {
			List []struct {
				Definition string `json:"definition"`
			} `json:"list"`
		} `json:"templating"`
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	var alerts struct {
		Groups []struct {
			Rules []struct {
				Alert string `json:"alert"`
				Expr  string `json:"expr"`
			} `json:"rules"`
		} `json:"groups"`
	}
	const chart = "../../../charts/k8singress/files/"
	text, err := os.ReadFile(chart + "dashboard.json")
	if err == nil {
		err = json.Unmarshal(text, &dashboard)
	}
	if err == nil {
		text, err = os.ReadFile(chart + "alerts.yaml")
	}
	if err == nil {
		err = yaml.Unmarshal(text, &alerts)
	}
	if err != nil {
		t.Fatal(err)
	}
	found = map[string][]string{}
	for _, v := range dashboard.Templating.List {
		if v.Definition != "" {
			variables = append(variables, v.Definition)
		}
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			found[panel.Title] = append(found[panel.Title], target.Expr)
		}
	}
	for _, group := range alerts.Groups {
		for _, rule := range group.Rules {
			found[rule.Alert] = append(found[rule.Alert], rule.Expr)
		}
	}
	return found, variables
}
