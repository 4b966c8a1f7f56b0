package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	alertsFile    = chartFolder + "/files/alerts.yaml"
	dashboardFile = chartFolder + "/files/dashboard.json"
)

// promtool runs promtool of Debian's package prometheus, and skips the test if it is missing.
func promtool(t *testing.T, arguments ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		leave := t.Skipf
		if os.Getenv("K8SINGRESS_TESTS") == "all" {
			leave = t.Fatalf
		}
		leave("LEFT OUT: there is no promtool; install Debian's package prometheus")
	}
	if out, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", arguments, err, out)
	}
}

// TestAlerts checks with promtool when the alerts fire, and that there is a case in which each alert fires, and one in
// which it does not.
func TestAlerts(t *testing.T) {
	var cases struct {
		Tests []struct {
			Rules []struct {
				Name  string `json:"alertname"`
				Fires []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	text, err := os.ReadFile("testdata/alerts.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &cases)
	}
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, c := range cases.Tests {
		for _, rule := range c.Rules {
			tested[fmt.Sprint(rule.Name, len(rule.Fires) > 0)] = true
		}
	}
	for _, alert := range readAlerts(t) {
		for _, fires := range []bool{true, false} {
			if !tested[fmt.Sprint(alert.Alert, fires)] {
				t.Errorf("%s has no case in which firing is %v", alert.Alert, fires)
			}
		}
	}
	promtool(t, "test", "rules", "testdata/alerts.yaml")
}

// rule is an alert of the chart.
type rule struct {
	Alert string `json:"alert"`
	Expr  string `json:"expr"`
}

func readAlerts(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	text, err := os.ReadFile(alertsFile)
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil || len(file.Groups) != 1 || len(file.Groups[0].Rules) == 0 {
		t.Fatalf("%v, %d groups", err, len(file.Groups))
	}
	return file.Groups[0].Rules
}

// dashboardQueries returns the expressions of the dashboard, with values for Grafana's variables. Each selector of
// metrics of routes must have all variables.
func dashboardQueries(t *testing.T) (all []string) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	text, err := os.ReadFile(dashboardFile)
	if err == nil {
		err = json.Unmarshal(text, &dashboard)
	}
	if err != nil {
		t.Fatal(err)
	}
	const ofRoute, filtered = "k8singress_route_", `$namespace_label=~"$namespace",ingress=~"$ingress",host=~"$host"}`
	variables := strings.NewReplacer("$__rate_interval", "1m", "$namespace_label", "exported_namespace",
		"$namespace", ".*", "$ingress", ".*", "$host", ".*")
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			if strings.Count(target.Expr, ofRoute) != strings.Count(target.Expr, filtered) {
				t.Errorf("%s has metrics of routes without %s", target.Expr, filtered)
			}
			all = append(all, variables.Replace(target.Expr))
		}
	}
	if len(all) < 10 {
		t.Fatalf("the dashboard has the expressions %q", all)
	}
	return all
}

var ourMetric = regexp.MustCompile(`\b(k8singress|nginx_ingress_controller)_[a-z_]+`)

// TestQueriesFindSeries checks that the controller has all series that the alerts and the dashboard read, and that
// Prometheus accepts the expressions of the dashboard.
func TestQueriesFindSeries(t *testing.T) {
	text, err := os.ReadFile(chartFolder + "/files/series.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for name := range strings.Lines(string(text)) {
		known[strings.TrimSpace(name)] = true
	}
	queries := dashboardQueries(t)
	var rules []values
	for i, query := range queries {
		rules = append(rules, values{"record": fmt.Sprintf("panel:%d", i), "expr": query})
	}
	for _, alert := range readAlerts(t) {
		queries = append(queries, alert.Expr)
	}
	for _, query := range queries {
		names := ourMetric.FindAllString(query, -1)
		for _, name := range names {
			if !known[name] {
				t.Errorf("there is no series %s for %s", name, query)
			}
		}
		if len(names) == 0 {
			t.Errorf("%s reads no series", query)
		}
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	made, err := yaml.Marshal(values{"groups": []values{{"name": "dashboard", "rules": rules}}})
	if err == nil {
		err = os.WriteFile(file, made, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}

// TestDashboardOfHonoredLabels checks that the dashboard reads the label namespace if Prometheus keeps it, and that the
// rest of the dashboard is the file.
func TestDashboardOfHonoredLabels(t *testing.T) {
	for honored, want := range map[bool]string{false: "exported_namespace", true: "namespace"} {
		r := mustRender(t, values{
			"controller": values{"metrics": values{"enabled": true, "serviceMonitor": values{"honorLabels": honored}}},
			"k8singress": values{"dashboard": values{"enabled": true}},
		})
		var got, file values
		for _, object := range r.objects(t) {
			if text, found := find(object, []string{"data", "k8singress.json"}); found {
				decodeJSON(t, []byte(text.(string)), &got)
			}
		}
		text, err := os.ReadFile(dashboardFile)
		if err != nil {
			t.Fatal(err)
		}
		decodeJSON(t, text, &file)
		label := got["templating"].(values)["list"].([]any)[1].(values)
		if !has(label, values{"name": "namespace_label", "current": values{"value": want}}) {
			t.Errorf("with honorLabels %v, the variable is %v", honored, label)
		}
		delete(got, "templating")
		delete(file, "templating")
		if !reflect.DeepEqual(got, file) {
			t.Error("the dashboard is not the file")
		}
	}
}

func decodeJSON(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}
