package featuretests

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/daemons"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// The ranges of all expressions are replaced by this one, so that the test is short.
const (
	queryRange   = "10s"
	queryRounds  = 10
	targetLabels = "labels: {namespace: ingress-nginx, pod: controller-0}"
	nginxClass   = "k8s.io/ingress-nginx"
)

// sourceOfQueries is a file in which there are expressions for Prometheus.
type sourceOfQueries struct {
	Source string `json:"source"`
	// Kept means that the label namespace of the series is kept, because the target has no label with this name.
	Kept      bool       `json:"kept"`
	Variables []variable `json:"variables"`
	// Selected are values of variables that the expressions have instead of the usual ones.
	Selected    map[string]string `json:"selected"`
	Expressions []*query          `json:"expressions"`
}

// variable is a variable of a dashboard.
type variable struct {
	// Query is Grafana's function label_values with a series and a label.
	Query string `json:"query"`
	// Want lists the values in alphabetical order.
	Want []string `json:"want"`
}

var labelValues = regexp.MustCompile(`^label_values\((.+), (\$?\w+)\)$`)

// check compares the values of the variable with the expected ones, while all other variables have Grafana's value All.
func (v variable) check(p *prometheus) error {
	match := labelValues.FindStringSubmatch(v.Query)
	if match == nil {
		return fmt.Errorf("%s is not label_values(series, label)", v.Query)
	}
	got, err := p.values(everything.Replace(match[2]), everything.Replace(match[1]))
	if err == nil && !slices.Equal(got, v.Want) {
		err = fmt.Errorf("%s has the values %v, want %v", v.Query, got, v.Want)
	}
	return err
}

// everything replaces variables by Grafana's value All.
var everything = strings.NewReplacer("$namespace_label", "exported_namespace", "$controller_class", ".*",
	"$controller", ".*", "$exported_namespace", ".*", "$namespace", ".*", "$ingress", ".*")

// query is an expression, with the value that it must have during the load.
type query struct {
	Expr string `json:"expr"`
	// Panel is the title of a panel of our dashboard, or the name of our alert, whose expression it is.
	Panel string `json:"panel"`
	// Labels select one series of the result. Without them, the result must be a single series.
	Labels map[string]string `json:"labels"`
	// Want is a number, or the name of a value that the test measures.
	Want json.RawMessage `json:"want"`
	// Empty is the reason why there is no result.
	Empty string `json:"empty"`
	// All means that the variables have Grafana's value All.
	All bool `json:"all"`

	source   string
	at       *prometheus
	selected map[string]string
}

var queryRanges = regexp.MustCompile(`\[(\d+[smh]|\$__rate_interval|\{\{ interval \}\})\]`)

// text returns the expression with values for the variables of dashboards and of Flagger.
func (q *query) text() string {
	selected := strings.NewReplacer("$namespace_label", "exported_namespace", "$controller_class", nginxClass,
		"$controller", "controller-0", "$exported_namespace", "default",
		"$namespace", cmp.Or(q.selected["namespace"], "ingress-nginx"), "$ingress", ".*", "$host", ".*",
		"{{ namespace }}", "default", "{{ ingress }}", "main")
	if q.All {
		selected = everything
	}
	return selected.Replace(queryRanges.ReplaceAllString(q.Expr, "["+queryRange+"]"))
}

// check compares the result with the measured values.
func (q *query) check(measured map[string]span) error {
	found, err := q.at.query(q.text())
	if err != nil {
		return err
	}
	if q.Empty != "" {
		if len(found) > 0 {
			return fmt.Errorf("the result is %v, although %s", found, q.Empty)
		}
		return nil
	}
	var matching []sample
	for _, s := range found {
		if q.Labels == nil && len(found) == 1 || q.Labels != nil && maps.Equal(q.Labels, s.labels) {
			matching = append(matching, s)
		}
	}
	if len(matching) != 1 {
		return fmt.Errorf("the result is %v, want one series with the labels %v", found, q.Labels)
	}
	want, err := wanted(strings.Trim(string(q.Want), `"`), measured)
	if err != nil {
		return err
	}
	if got := matching[0].value; !want.contains(got) {
		return fmt.Errorf("the value is %v, want %v", got, want)
	}
	return nil
}

// span is a range of values.
type span struct{ low, high float64 }

func (s span) contains(value float64) bool {
	return s.low <= value && value <= s.high || math.IsNaN(value) && math.IsNaN(s.low)
}

// about returns the values that differ from value by 2 % or less.
func about(value float64) span {
	return span{value - 0.02*math.Abs(value), value + 0.02*math.Abs(value)}
}

func wanted(want string, measured map[string]span) (span, error) {
	if number, err := strconv.ParseFloat(want, 64); err == nil {
		return about(number), nil
	}
	s, ok := measured[want]
	if !ok {
		return span{}, fmt.Errorf("no value %q is measured", want)
	}
	return s, nil
}

// prometheus is a running Prometheus.
type prometheus struct {
	testing.TB
	address string
}

// startPrometheus starts a Prometheus that reads the metrics at an address every second. As in clusters, labels of the
// target replace labels of the series.
func startPrometheus(t *testing.T, target, labels string) *prometheus {
	t.Helper()
	p := &prometheus{t, fixture.Address(t)}
	daemons.StartPrometheus(t, p.address, fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
- job_name: controller
  honor_labels: false
  static_configs:
  - targets: [%q]
    %s
`, target, labels))
	return p
}

// sample is a series with its value.
type sample struct {
	labels map[string]string
	value  float64
}

// query evaluates an expression now.
func (p *prometheus) query(expression string) (found []sample, err error) {
	var result struct {
		Type   string `json:"resultType"`
		Result []struct {
			Metric map[string]string `json:"metric"`
			Value  [2]any            `json:"value"`
		} `json:"result"`
	}
	if err := p.get("query?"+url.Values{"query": {expression}}.Encode(), &result); err != nil {
		return nil, err
	}
	for _, r := range result.Result {
		text, _ := r.Value[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, err
		}
		found = append(found, sample{r.Metric, value})
	}
	return found, nil
}

// values returns the values of a label, as label_values of Grafana.
func (p *prometheus) values(label, series string) (values []string, err error) {
	return values, p.get("label/"+label+"/values?"+url.Values{"match[]": {series}}.Encode(), &values)
}

func (p *prometheus) get(path string, into any) error {
	request, err := http.NewRequestWithContext(p.Context(), http.MethodGet, "http://"+p.address+"/api/v1/"+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct {
		Data  json.RawMessage `json:"data"`
		Error string          `json:"error"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return json.Unmarshal(answer.Data, into)
}

// TestDashboards evaluates the expressions of dashboards and alerts of ingress-nginx and of our chart, and the ones of
// Flagger, with Prometheus, and compares their values with the requests that it sends.
func TestDashboards(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "ingress-nginx")
	t.Setenv("POD_NAME", "controller-0")
	sources := readQueries(t)
	l := newRoundLoad(t)
	replacing, keeping := startPrometheus(t, l.gate, targetLabels), startPrometheus(t, l.health, "labels: {}")
	var pending []*query
	for _, s := range sources {
		for _, q := range s.Expressions {
			q.source, q.at, q.selected = s.Source, replacing, s.Selected
			if s.Kept {
				q.at = keeping
			}
			pending = append(pending, q)
		}
	}
	// The load lasts twice the range of the expressions.
	for range 2 * queryRounds {
		l.round()
	}
	failed := map[*query]error{}
	for end := time.Now().Add(deadline / 2); len(pending) > 0 && time.Now().Before(end); l.round() {
		pending = l.ask(pending, failed)
	}
	for _, q := range pending {
		t.Errorf("%s: %s: %v", q.source, q.text(), failed[q])
	}
	for _, s := range sources {
		for _, v := range s.Variables {
			if err := v.check(replacing); err != nil {
				t.Errorf("%s: %v", s.Source, err)
			}
		}
	}
}
