package featuretests

//go:generate go test -run ^TestMetricsPage$ -update

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

var update = flag.Bool("update", false, "rewrite the expected output in docs")

// metric describes a family of metrics in the registry.
type metric struct {
	name, kind, help string
	// labels maps the names of the labels to their values.
	labels map[string]map[string]bool
}

var (
	metricLine  = regexp.MustCompile(`^(k8singress_[a-z_]+)(?:\{(.*)\})? `)
	metricLabel = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
	// metricName matches the names in the code: of options, of descriptions, and of l4app's metrics for ports.
	metricName = regexp.MustCompile(`(?:Name: +|NewDesc\()"(k8singress_[a-z_]+)",|[dD]escribe\("([a-z_]+)",`)
)

// countable are the labels whose values are defined by the controller, not by objects.
var countable = []string{"class", "reason", "result", "direction", "protocol", "place"}

// TestMetricsPage checks that docs/metrics.md lists the metrics that a controller registers when it serves each kind
// of traffic, and that no metric of the code is missing there.
func TestMetricsPage(t *testing.T) {
	who, port := fixture.Certificate(t, "a.example"), fixture.Port(t)
	certificate, key := writePair(t, who)
	secure := strings.Replace(rule("a", "a.example", "Prefix", "/", "web"), "  rules:",
		"  tls: [{hosts: [a.example], secretName: own}]\n  rules:", 1)
	in := start(t, class+service("web", "9", "127.0.0.1", "169.254.1.1")+secure+tlsSecret("own", who.PEM(),
		who.KeyPEM())+
		service("none", "9")+rule("none", "c.example", "Prefix", "/", "none")+
		service("two", "9", "127.0.0.1", "127.0.0.2")+
		annotated("two", "d.example", "two", "k8singress.io/eject-after-failures", "1")+
		annotated("checked", "b.example", "web", "k8singress.io/health-check-path", "/")+nameService("9",
		"127.0.0.1", port),
		"tcp_services default/tcp-services", "udp_services default/udp-services", "stream_bind 127.0.0.1",
		fmt.Sprintf("admission_webhook %s {\ncertificate %s %s\n}", fixture.Address(t), certificate, key))
	// A route has series from its first request on. This request also ejects one of two endpoints.
	in.expect("d.example", "/", http.StatusBadGateway, "")
	wanted := metricsOfTheCode(t)
	var found []*metric
	in.eventually("the metrics of every kind", func() error {
		found = readMetrics(in.metrics())
		var missing []string
		for _, name := range wanted {
			if !slices.ContainsFunc(found, func(m *metric) bool { return m.name == name }) {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("the code has metrics that the registry has not: %q", missing)
		}
		return nil
	})
	head, err := os.ReadFile("testdata/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	fixture.Generated(t, "../../../docs/metrics.md", string(head)+metricsTable(found), *update)
}

// metricsOfTheCode returns the names of all metrics in the source code.
func metricsOfTheCode(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, folder := range []string{"../..", "../../../k8singress", "../../../l4app", "../../../caddyfile"} {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, match := range metricName.FindAllStringSubmatch(string(text), -1) {
				if name := match[1]; name != "" {
					names = append(names, name)
				} else {
					names = append(names, "k8singress_stream_"+match[2])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(names) < 10 {
		t.Fatalf("the code has only the metrics %q", names)
	}
	return names
}

// readMetrics parses the controller's metrics in the text format of Prometheus.
func readMetrics(text string) []*metric {
	all := map[string]*metric{}
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			what, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
			name, value, _ := strings.Cut(rest, " ")
			if !strings.HasPrefix(name, "k8singress_") {
				continue
			}
			if all[name] == nil {
				all[name] = &metric{name: name, labels: map[string]map[string]bool{}}
			}
			if what == "HELP" {
				all[name].help = value
			} else {
				all[name].kind = value
			}
			continue
		}
		match := metricLine.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		// A histogram and a summary have a line with their name and this suffix.
		of := all[strings.TrimSuffix(match[1], "_count")]
		if of == nil {
			continue
		}
		for _, label := range metricLabel.FindAllStringSubmatch(match[2], -1) {
			values := of.labels
			if values[label[1]] == nil {
				values[label[1]] = map[string]bool{}
			}
			values[label[1]][label[2]] = true
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *metric) int { return strings.Compare(a.name, b.name) })
}

// metricsTable returns a table with one row for each metric.
func metricsTable(all []*metric) string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, m := range all {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(m.labels)) {
			text := "`" + name + "`"
			if slices.Contains(countable, name) {
				text += " (" + strings.Join(slices.Sorted(maps.Keys(m.labels[name])), ", ") + ")"
			}
			labels = append(labels, text)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, strings.Join(labels, "; "), m.help)
	}
	return b.String()
}
