package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Metrics have their name and type in a row of a table in docs/metrics.md, or in a line of the text format.
var (
	metricRow  = regexp.MustCompile("(?m)^\\| `(k8singress_[a-z0-9_]+)` \\| (counter|gauge|histogram|summary) ")
	metricType = regexp.MustCompile(`(?m)^# TYPE (nginx_ingress_controller_[a-z0-9_]+) (\w+)$`)
)

// writtenMetrics are the files with the metrics of ingress-nginx that the code writes.
const writtenMetrics = "../../internal/*/*/testdata/*.txt"

const seriesHead = "# The names of the series at /metrics, from docs/metrics.md and from tests of the metrics of " +
	"ingress-nginx.\n# `make generate` writes this file.\n"

// seriesOf has the suffixes of the series by the type of a metric.
var seriesOf = map[string][]string{
	"counter": {""}, "gauge": {""}, "histogram": {"_bucket", "_count", "_sum"}, "summary": {"", "_count", "_sum"},
}

// TestSeries checks that the chart knows the series of all metrics. Feature tests compare docs/metrics.md with the
// registry of a controller, and unit tests compare the other files with what the code writes.
func TestSeries(t *testing.T) {
	names := seriesIn(t, metricRow, "../../docs/metrics.md")
	files, err := filepath.Glob(writtenMetrics)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		names = append(names, seriesIn(t, metricType, file)...)
	}
	slices.Sort(names)
	for _, name := range []string{"k8singress_http_request_duration_seconds_bucket", "k8singress_route_in_flight",
		"nginx_ingress_controller_config_hash", "nginx_ingress_controller_requests",
		"nginx_ingress_controller_request_duration_seconds_bucket"} {
		if !slices.Contains(names, name) {
			t.Errorf("there is no series %s", name)
		}
	}
	checkFile(t, chartFolder+"/files/series.txt", seriesHead+strings.Join(slices.Compact(names), "\n")+"\n")
}

func seriesIn(t *testing.T, metric *regexp.Regexp, file string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range metric.FindAllStringSubmatch(string(text), -1) {
		for _, suffix := range seriesOf[found[2]] {
			names = append(names, found[1]+suffix)
		}
	}
	return names
}
