package meter

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/k8singress/k8singress/internal/process/exposition"
)

// families describe the metrics of requests. Their names lack the prefix.
var families = [Latencies + 1]exposition.Family{
	Requests: {Name: "requests", Help: "The number of HTTP requests.", Kind: exposition.Counter},
	Durations: {Name: "request_duration_seconds", Kind: exposition.Histogram,
		Help: "The duration of requests in seconds, from the end of the request header to the end of the response."},
	Responses: {Name: "response_duration_seconds", Kind: exposition.Histogram,
		Help: "The time in seconds from the attempt to reach an endpoint to the end of its response."},
	Headers: {Name: "header_duration_seconds", Kind: exposition.Histogram,
		Help: "The time in seconds until an endpoint has sent the header of its response."},
	Connects: {Name: "connect_duration_seconds", Kind: exposition.Histogram,
		Help: "The time in seconds to open a connection to an endpoint. 0 for a connection that was open."},
	Received: {Name: "request_size", Kind: exposition.Histogram,
		Help: "The size of requests in bytes, including the header."},
	Answers: {Name: "response_size", Kind: exposition.Histogram, Help: "The size of responses in bytes."},
	Sent:    {Name: "bytes_sent", Kind: exposition.Histogram, Help: "The size of responses in bytes."},
	Latencies: {Name: "ingress_upstream_latency_seconds", Kind: exposition.Summary,
		Help: "The time in seconds to open a connection to an endpoint of the Ingress."},
}

// Name returns the name of the metric without the prefix.
func (m NginxMetric) Name() string { return families[m].Name }

// Write writes the metrics of requests with names that begin with prefix. constant are labels that all metrics have. It
// holds no more than the list of the label sets, and stops if the client has gone.
func (n *Nginx) Write(to *exposition.Writer, prefix string, constant []exposition.Label) {
	sets := n.sorted()
	w := &nginxWriter{Writer: to, n: n, constant: constant}
	for metric := range Latencies {
		if n.Excluded[metric] {
			continue
		}
		f := families[metric]
		f.Name = prefix + f.Name
		to.Family(f)
		for _, s := range sets {
			if to.Err() != nil {
				return
			}
			w.write(metric, s)
		}
	}
	w.writeLatencies(prefix)
}

// sorted returns the label sets in the order of their labels.
func (n *Nginx) sorted() []*set {
	n.mu.Lock()
	sets := slices.Collect(n.sets.Values())
	n.mu.Unlock()
	slices.SortFunc(sets, func(a, b *set) int { return compareSets(&a.labels, &b.labels) })
	return sets
}

func compareSets(a, b *setLabels) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.ingress, b.ingress),
		cmp.Compare(a.service, b.service), cmp.Compare(a.canary, b.canary), cmp.Compare(a.host, b.host),
		cmp.Compare(a.path, b.path), cmp.Compare(a.method, b.method), cmp.Compare(a.status, b.status))
}

// nginxWriter writes label sets. Its slices are reused.
type nginxWriter struct {
	*exposition.Writer
	n        *Nginx
	constant []exposition.Label
	labels   []exposition.Label
	buckets  exposition.Buckets
}

// write writes one metric of a label set. A histogram without observations is left out.
func (w *nginxWriter) write(metric NginxMetric, s *set) {
	if metric == Requests {
		w.Value(float64(s.requests.Load()), w.labelsOf(&s.labels)...)
		return
	}
	if w.read(int(metric)-1, s) {
		w.Histogram(&w.buckets, w.labelsOf(&s.labels)...)
	}
}

// labelsOf returns the labels of a set. The next call overwrites them.
func (w *nginxWriter) labelsOf(l *setLabels) []exposition.Label {
	w.labels = append(w.labels[:0], w.constant...)
	w.labels = append(w.labels,
		exposition.Label{Name: "canary", Value: l.canary}, exposition.Label{Name: "ingress", Value: l.ingress},
		exposition.Label{Name: "method", Value: methodNames[l.method]},
		exposition.Label{Name: "namespace", Value: l.namespace}, exposition.Label{Name: "path", Value: l.path},
		exposition.Label{Name: "service", Value: l.service}, exposition.Label{Name: "status", Value: l.statusName()})
	if !w.n.WithoutHost {
		w.labels = append(w.labels, exposition.Label{Name: "host", Value: l.host})
	}
	return w.labels
}

// read reads a histogram of a label set. It returns false if the histogram has no observations.
func (w *nginxWriter) read(i int, s *set) bool {
	w.buckets.Bounds, w.buckets.Counts = w.n.boundsOf(i), w.buckets.Counts[:0]
	total := uint64(0)
	for j := range len(w.buckets.Bounds) + 1 {
		count := s.buckets[j][i].Load()
		total += count
		w.buckets.Counts = append(w.buckets.Counts, count)
	}
	w.buckets.Sum = float64(s.sums[i].Load()) / scale(i)
	w.buckets.Native = nil
	if s.native != nil {
		var m dto.Metric
		if err := s.native[i].Write(&m); err == nil {
			w.buckets.Native = m.GetHistogram()
		}
	}
	return total > 0
}

func (w *nginxWriter) writeLatencies(prefix string) {
	if w.n.Excluded[Latencies] {
		return
	}
	f := families[Latencies]
	f.Name = prefix + f.Name
	w.Family(f)
	w.n.mu.Lock()
	all := w.n.latencies.Clone()
	w.n.mu.Unlock()
	order := slices.SortedFunc(all.Keys(), func(a, b latencyLabels) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.ingress, b.ingress),
			cmp.Compare(a.service, b.service), cmp.Compare(a.canary, b.canary))
	})
	for _, of := range order {
		l := all.Get(of)
		if count := l.count.Load(); count > 0 {
			w.labels = append(w.labels[:0], w.constant...)
			w.labels = append(w.labels, exposition.Label{Name: "canary", Value: of.canary},
				exposition.Label{Name: "ingress", Value: of.ingress},
				exposition.Label{Name: "namespace", Value: of.namespace},
				exposition.Label{Name: "service", Value: of.service})
			w.Summary(time.Duration(l.sum.Load()).Seconds(), count, w.labels...)
		}
	}
}

var limitedRequests = prometheus.NewDesc("k8singress_nginx_metrics_limited_total",
	"The number of requests that the metrics with the names of ingress-nginx count without their path and method, "+
		"because there are too many label sets (max_label_sets in the option nginx_metrics).", nil, nil)

// Limited is a prometheus.Collector that counts the requests whose label sets are above the maximum.
type Limited struct{ Registry *Registry }

// Describe implements prometheus.Collector.
func (Limited) Describe(to chan<- *prometheus.Desc) { to <- limitedRequests }

// Collect implements prometheus.Collector.
func (l Limited) Collect(to chan<- prometheus.Metric) {
	count := uint64(0)
	if n := l.Registry.Nginx(); n != nil {
		count = n.limited.Load()
	}
	to <- prometheus.MustNewConstMetric(limitedRequests, prometheus.CounterValue, float64(count))
}
