package chart

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metricRow matches a row of a table of metrics in docs/metrics.md: the name and the type.
var metricRow = regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)`[^|]*\\| (counter|gauge|histogram|summary)")

const seriesHead = "# The names of the series at /metrics, from docs/metrics.md. `make generate` writes this file.\n"

// TestSeries checks that the chart knows all series that docs/metrics.md lists. The feature tests compare that page
// with the registry of a controller.
func TestSeries(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, row := range metricRow.FindAllStringSubmatch(string(page), -1) {
		suffixes := map[string][]string{"histogram": {"_bucket", "_count", "_sum"}, "summary": {"", "_count", "_sum"},
			"counter": {""}, "gauge": {""}}
		for _, suffix := range suffixes[row[2]] {
			names = append(names, row[1]+suffix)
		}
	}
	slices.Sort(names)
	if !slices.Contains(names, "k8singress_http_request_duration_seconds_bucket") || len(names) < 50 {
		t.Fatalf("the page has only the series %v", names)
	}
	checkFile(t, chartFolder+"/files/series.txt", seriesHead+strings.Join(slices.Compact(names), "\n")+"\n")
}
