package meter

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/k8singress/k8singress/internal/process/exposition"
)

// names are the labels of all series of a route, sorted by name.
var names = []string{"host", "ingress", "namespace", "path", "service"}

// The families of the series of routes.
var (
	requests = routeFamily(exposition.Counter, "requests_total",
		"The number of HTTP requests of a route, by the class of the response status. A request without a "+
			"response, because the client or a handler closed the connection, counts as 4xx.", "class")
	durations = routeFamily(exposition.Histogram, "request_duration_seconds",
		"The duration of the HTTP requests of a route in seconds, from the end of the request header to the end of "+
			"the response.")
	firstBytes = routeFamily(exposition.Summary, "first_byte_seconds",
		"The time from the end of the request header until the endpoint began its response, in seconds. For a "+
			"response of the controller itself, it is the whole duration.")
	retries = routeFamily(exposition.Counter, "retries_total",
		"The number of attempts to send a request of a route to an endpoint after the first attempt failed.")
	inFlight = routeFamily(exposition.Gauge, "in_flight",
		"The number of requests of a route in progress, including upgraded connections.")
	bodies = routeFamily(exposition.Counter, "bytes_total",
		"The number of body bytes of a route: read from clients to forward them (direction in), and sent to clients "+
			"(direction out). The data of an upgraded connection is included when the connection has ended.",
		"direction")
)

// family is a family of series, which collect sends to a registry and Write writes itself.
type family struct {
	exposition.Family
	desc *prometheus.Desc
}

// routeFamily returns a family of series with the labels of routes and more labels.
func routeFamily(kind exposition.Kind, name, help string, more ...string) family {
	name = "k8singress_route_" + name
	return family{
		exposition.Family{Name: name, Help: help, Kind: kind},
		prometheus.NewDesc(name, help, slices.Concat(more, names), nil),
	}
}

// classNames are the values of the label class.
var classNames = [classes]string{"1xx", "2xx", "3xx", "4xx", "5xx"}

// Describe implements prometheus.Collector.
func (*Registry) Describe(to chan<- *prometheus.Desc) {
	for _, f := range []family{requests, durations, firstBytes, retries, inFlight, bodies} {
		to <- f.desc
	}
}

// Collect implements prometheus.Collector. It sends nothing to Others.
func (r *Registry) Collect(to chan<- prometheus.Metric) {
	if _, skip := r.skipping.Load(to); skip {
		return
	}
	for route, totals := range seriesOf(r.Used()) {
		collect(to, &route.Labels, totals)
	}
}

// collect sends the series of one route.
func collect(to chan<- prometheus.Metric, l *Labels, t *Totals) {
	// The labels are sorted by name, as the registry requires. All series of the route share their memory, because a
	// scrape holds the series of all routes.
	of := pairs("", "", "host", l.Host, "ingress", l.Ingress, "namespace", l.Namespace, "path", l.Path,
		"service", l.Service)
	count := func(f family, value uint64, name, more string) {
		counter := &dto.Counter{Value: proto.Float64(float64(value))}
		to <- &series{desc: f.desc, labels: slices.Concat(pairs(name, more), of), counter: counter}
	}
	for i, class := range classNames {
		count(requests, t.Requests[i], "class", class)
	}
	buckets, total := make([]*dto.Bucket, 0, len(bounds)), uint64(0)
	for i, bound := range bounds {
		total += t.Durations[i]
		buckets = append(buckets,
			&dto.Bucket{CumulativeCount: proto.Uint64(total), UpperBound: proto.Float64(bound.Seconds())})
	}
	total += t.Durations[len(bounds)]
	to <- &series{desc: durations.desc, labels: of, histogram: &dto.Histogram{Bucket: buckets,
		SampleCount: &total, SampleSum: proto.Float64(t.Duration.Seconds())}}
	to <- &series{desc: firstBytes.desc, labels: of, summary: &dto.Summary{
		SampleCount: proto.Uint64(t.Answered), SampleSum: proto.Float64(t.FirstByte.Seconds())}}
	count(retries, t.Retries, "", "")
	to <- &series{desc: inFlight.desc, labels: of, gauge: &dto.Gauge{Value: proto.Float64(float64(t.InFlight))}}
	count(bodies, t.Received, "direction", "in")
	count(bodies, t.Sent, "direction", "out")
}

// pairs returns labels from names and values in turn. A label with an empty name is left out.
func pairs(namesAndValues ...string) (all []*dto.LabelPair) {
	for i := 0; i < len(namesAndValues); i += 2 {
		if name := namesAndValues[i]; name != "" {
			all = append(all, &dto.LabelPair{Name: &name, Value: &namesAndValues[i+1]})
		}
	}
	return all
}

// series is a prometheus.Metric whose labels other series may share.
type series struct {
	desc      *prometheus.Desc
	labels    []*dto.LabelPair
	counter   *dto.Counter
	gauge     *dto.Gauge
	histogram *dto.Histogram
	summary   *dto.Summary
}

// Desc implements prometheus.Metric.
func (s *series) Desc() *prometheus.Desc { return s.desc }

// Write implements prometheus.Metric.
func (s *series) Write(to *dto.Metric) error {
	to.Label, to.Counter, to.Gauge, to.Histogram, to.Summary = s.labels, s.counter, s.gauge, s.histogram, s.summary
	return nil
}
