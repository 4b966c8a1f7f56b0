package meter

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// names are the labels of all series of a route.
var names = []string{"namespace", "ingress", "service", "host", "path"}

var (
	requests = prometheus.NewDesc("k8singress_route_requests_total",
		"The number of HTTP requests of a route, by the class of the response status. A request whose client closed "+
			"the connection before the response counts as 4xx.", with("class"), nil)
	durations = prometheus.NewDesc("k8singress_route_request_duration_seconds",
		"The duration of the HTTP requests of a route in seconds, from the end of the request header to the end of "+
			"the response.", names, nil)
	firstBytes = prometheus.NewDesc("k8singress_route_first_byte_seconds",
		"The time from the end of the request header until the endpoint began its response, in seconds. For a "+
			"response of the controller itself, it is the whole duration.", names, nil)
	retries = prometheus.NewDesc("k8singress_route_retries_total",
		"The number of attempts to send a request of a route to an endpoint after the first attempt failed.", names,
		nil)
	inFlight = prometheus.NewDesc("k8singress_route_in_flight",
		"The number of requests of a route in progress, including upgraded connections.", names, nil)
	bodies = prometheus.NewDesc("k8singress_route_bytes_total",
		"The number of body bytes of a route: read from clients to forward them (direction in), and sent to clients "+
			"(direction out). The data of an upgraded connection is included when the connection has ended.",
		with("direction"), nil)
)

func with(label string) []string { return slices.Concat(names, []string{label}) }

// classNames are the values of the label class.
var classNames = [classes]string{"1xx", "2xx", "3xx", "4xx", "5xx"}

// Describe implements prometheus.Collector.
func (*Registry) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requests, durations, firstBytes, retries, inFlight, bodies} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (r *Registry) Collect(to chan<- prometheus.Metric) {
	for used := r.Used(); len(used) > 0; {
		labels, totals := used[0].Labels, used[0].Totals()
		for used = used[1:]; len(used) > 0 && used[0].Labels.Compare(&labels) == 0; used = used[1:] {
			// A canary beside two routes of different Ingresses has the same labels twice.
			more := used[0].Totals()
			totals.add(&more)
		}
		collect(to, &labels, &totals)
	}
}

// collect sends the series of one route.
func collect(to chan<- prometheus.Metric, l *Labels, t *Totals) {
	// The labels are sorted by name, as the registry requires. All series of the route share their memory, because a
	// scrape holds the series of all routes.
	of := pairs("", "", "host", l.Host, "ingress", l.Ingress, "namespace", l.Namespace, "path", l.Path,
		"service", l.Service)
	count := func(d *prometheus.Desc, value uint64, name, more string) {
		counter := &dto.Counter{Value: proto.Float64(float64(value))}
		to <- &series{desc: d, labels: slices.Concat(pairs(name, more), of), counter: counter}
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
	to <- &series{desc: durations, labels: of, histogram: &dto.Histogram{Bucket: buckets,
		SampleCount: &total, SampleSum: proto.Float64(t.Duration.Seconds())}}
	to <- &series{desc: firstBytes, labels: of, summary: &dto.Summary{
		SampleCount: proto.Uint64(t.Answered), SampleSum: proto.Float64(t.FirstByte.Seconds())}}
	count(retries, t.Retries, "", "")
	to <- &series{desc: inFlight, labels: of, gauge: &dto.Gauge{Value: proto.Float64(float64(t.InFlight))}}
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
