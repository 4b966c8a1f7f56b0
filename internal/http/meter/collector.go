package meter

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
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
	of := []string{l.Namespace, l.Ingress, l.Service, l.Host, l.Path}
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, more ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, slices.Concat(of, more)...)
	}
	for i, name := range classNames {
		send(requests, prometheus.CounterValue, float64(t.Requests[i]), name)
	}
	buckets, count := make(map[float64]uint64, len(bounds)), uint64(0)
	for i, bound := range bounds {
		count += t.Durations[i]
		buckets[bound.Seconds()] = count
	}
	count += t.Durations[len(bounds)]
	to <- prometheus.MustNewConstHistogram(durations, count, t.Duration.Seconds(), buckets, of...)
	to <- prometheus.MustNewConstSummary(firstBytes, t.Answered, t.FirstByte.Seconds(), nil, of...)
	send(retries, prometheus.CounterValue, float64(t.Retries))
	send(inFlight, prometheus.GaugeValue, float64(t.InFlight))
	send(bodies, prometheus.CounterValue, float64(t.Received), "in")
	send(bodies, prometheus.CounterValue, float64(t.Sent), "out")
}
