package engine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
)

// ejected is a prometheus.Collector that counts the ejected endpoints at each scrape.
type ejected struct{ table *endpoints.Table }

var ejectedEndpoints = prometheus.NewDesc("k8singress_ejected_endpoints",
	"The number of endpoints of a backend that get no requests for a while, because several requests in succession "+
		"failed. Backends without ejected endpoints are not included.",
	[]string{"backend"}, nil)

// Describe implements prometheus.Collector.
func (ejected) Describe(to chan<- *prometheus.Desc) { to <- ejectedEndpoints }

// Collect implements prometheus.Collector.
func (e ejected) Collect(to chan<- prometheus.Metric) {
	for id, n := range e.table.Ejected() {
		to <- prometheus.MustNewConstMetric(ejectedEndpoints, prometheus.GaugeValue, float64(n), id)
	}
}

// problems is a prometheus.Collector that counts the problems of all objects at each scrape.
type problems struct{ engine *Engine }

var (
	verdicts = prometheus.NewDesc("k8singress_verdicts",
		"The number of problems with Kubernetes objects, by kind of object, severity and reason. "+
			"/k8singress/objects lists them.",
		[]string{"kind", "severity", "reason"}, nil)
	withoutEndpoints = prometheus.NewDesc("k8singress_ingresses_without_endpoints",
		"The number of Ingresses with a Service that has no ready endpoints, by namespace.",
		[]string{"namespace"}, nil)
)

// Describe implements prometheus.Collector.
func (problems) Describe(to chan<- *prometheus.Desc) {
	to <- verdicts
	to <- withoutEndpoints
}

// problemKind has the labels of a problem.
type problemKind struct {
	kind     string
	severity report.Severity
	reason   report.Reason
}

// Collect implements prometheus.Collector.
func (p problems) Collect(to chan<- prometheus.Metric) {
	counts, without := countVerdicts(p.engine.Report())
	for of, n := range counts {
		to <- prometheus.MustNewConstMetric(verdicts, prometheus.GaugeValue, float64(n), of.kind, string(of.severity),
			string(of.reason))
	}
	for namespace, n := range without {
		to <- prometheus.MustNewConstMetric(withoutEndpoints, prometheus.GaugeValue, float64(n), namespace)
	}
}

// countVerdicts returns the number of problems in a report, and the number of Ingresses without endpoints in each
// namespace.
func countVerdicts(r *report.Report) (counts map[problemKind]int, without map[string]int) {
	counts, without = map[problemKind]int{}, map[string]int{}
	for _, v := range r.Verdicts {
		lacks := false
		for _, p := range v.Problems {
			counts[problemKind{v.Object.Kind, p.Severity, p.Reason}]++
			lacks = lacks || p.Reason == report.NoEndpoints
		}
		if lacks && isIngress(v.Object) {
			without[v.Object.Namespace]++
		}
	}
	return counts, without
}

func isIngress(object ir.Ref) bool { return object.Kind == kinds.Ingress }

// Watcher is implemented by a Source that can become outdated, such as a cluster.
type Watcher interface {
	// Heard returns, for each kind of object, when the API server has last sent anything about its objects. For a
	// folder of manifests, it returns when the folder was last read.
	Heard() map[string]time.Time
}

// watches is a prometheus.Collector for the age of each watch.
type watches struct{ source Source }

var watchAge = prometheus.NewDesc("k8singress_watch_age_seconds",
	"The time since the API server has last sent anything about the objects of a kind, in seconds. It sends something "+
		"about once a minute even if no object changes. For a folder of manifests (kind manifests), it is the time "+
		"since the folder was last read.",
	[]string{"kind"}, nil)

// Describe implements prometheus.Collector.
func (watches) Describe(to chan<- *prometheus.Desc) { to <- watchAge }

// Collect implements prometheus.Collector.
func (w watches) Collect(to chan<- prometheus.Metric) {
	watcher, ok := w.source.(Watcher)
	if !ok {
		return
	}
	for kind, at := range watcher.Heard() {
		to <- prometheus.MustNewConstMetric(watchAge, prometheus.GaugeValue, time.Since(at).Seconds(), kind)
	}
}
