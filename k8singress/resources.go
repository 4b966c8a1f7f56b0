package k8singress

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/k8singress/k8singress/internal/http/compress"
	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/process/budget"
)

// resources is a prometheus.Collector for resources that clients can use up, such as connections and memory, and their
// limits.
type resources struct{}

// usage holds the descriptions of the three metrics about a limited resource: the amount in use, the limit, and the
// number of refusals because the limit was reached.
type usage struct{ used, limit, refused *prometheus.Desc }

func newUsage(name, used, limit, refused string) usage {
	return usage{
		prometheus.NewDesc(name, used, nil, nil), prometheus.NewDesc(name+"_limit", limit, nil, nil),
		prometheus.NewDesc(name+"_refused_total", refused, nil, nil),
	}
}

var (
	clientConnections = newUsage("k8singress_client_connections", "The number of open connections of HTTP clients.",
		"The maximum of k8singress_client_connections. 0 means no limit.",
		"The number of new connections of HTTP clients that were closed because a limit was reached.")
	clientsRefused = prometheus.NewDesc("k8singress_client_connections_refused_by_address_total",
		"The number of connections in k8singress_client_connections_refused_total that were closed because the "+
			"client's address had reached its own limit.", nil, nil)
	clientsEnded = prometheus.NewDesc("k8singress_client_connections_ended_total",
		"The number of connections of HTTP clients that were idle, or whose requests made no progress, and that "+
			"were closed to make room for new connections.", nil, nil)
	probeConnections = newUsage("k8singress_probe_connections",
		"The number of open connections to the health port.",
		"The maximum of k8singress_probe_connections. 0 means no limit.",
		"The number of new connections to the health port that were closed because the limit was reached.")
	openRequests = newUsage("k8singress_request_bytes",
		"The memory reserved for open HTTP/2 and HTTP/3 requests, in bytes: 16 KiB and the size of the header for "+
			"each request.",
		"The maximum of k8singress_request_bytes. One client address alone can use about eight ninths of it.",
		"The number of HTTP/2 and HTTP/3 requests that got 503 because the limit was reached.")
	endpointConnections = newUsage("k8singress_endpoint_connections",
		"The number of HTTP connections to endpoints, including idle connections.",
		"The maximum of k8singress_endpoint_connections. 0 means no limit. One namespace alone can use about eight "+
			"ninths of it.",
		"The number of requests that got 503 because the backends of their namespace had reached the limit of "+
			"connections.")
	callConnections = newUsage("k8singress_call_connections",
		"The number of connections to mirrors and to services for external authentication, including idle connections.",
		"The maximum of k8singress_call_connections. 0 means no limit. One namespace alone can use about eight "+
			"ninths of it.",
		"The number of requests to external authentication services and mirrors that were not sent because the "+
			"Ingresses of their namespace had reached the limit of connections. The client's request then got 503, "+
			"or was not mirrored.")
	bodyFiles = newUsage("k8singress_body_files",
		"The number of temporary files with request and response bodies.",
		"The maximum of k8singress_body_files. 0 means no limit. One namespace alone can use about eight ninths of it.",
		"The number of bodies that were forwarded while they arrived, because there was no temporary file for them: "+
			"the backends of their namespace had reached the limit, or the file could not be created.")
	unmeasured = prometheus.NewDesc("k8singress_fastcgi_bodies_refused_total",
		"The number of requests that got 503 because FastCGI needs the length of the body, and there was not enough "+
			"space to buffer the body.", nil, nil)
	encoderBytes = newUsage("k8singress_encoder_bytes",
		"The memory used to compress responses, in bytes.",
		"The maximum of k8singress_encoder_bytes. 0 means no limit. One namespace alone can use about eight "+
			"ninths of it.",
		"The number of responses that were not compressed because the limit was reached.")
	bodyBytes = prometheus.NewDesc("k8singress_body_bytes",
		"The size of the buffered request and response bodies in bytes, by place: in memory or in temporary files.",
		[]string{"place"}, nil)
	bodyLimit = prometheus.NewDesc("k8singress_body_bytes_limit",
		"The maximum of k8singress_body_bytes, by place. One namespace alone can use about eight ninths of it.",
		[]string{"place"}, nil)
)

// Describe implements prometheus.Collector.
func (resources) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []usage{
		clientConnections, probeConnections, openRequests, endpointConnections, callConnections,
		bodyFiles, encoderBytes,
	} {
		to <- d.used
		to <- d.limit
		to <- d.refused
	}
	for _, d := range []*prometheus.Desc{clientsRefused, clientsEnded, unmeasured, bodyBytes, bodyLimit} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (resources) Collect(to chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, float64(value), labels...)
	}
	sendUsage := func(d usage, u budget.Usage) {
		send(d.used, prometheus.GaugeValue, u.Used)
		send(d.limit, prometheus.GaugeValue, u.Limit)
		send(d.refused, prometheus.CounterValue, u.Refused)
	}
	open := front.Process().Clients()
	sendUsage(clientConnections, open.Usage)
	send(clientsRefused, prometheus.CounterValue, open.RefusedByAddress)
	send(clientsEnded, prometheus.CounterValue, open.Ended)
	sendUsage(probeConnections, probes.Figures().Usage)
	sendUsage(openRequests, front.Process().Requests())
	used := proxy.Used()
	sendUsage(endpointConnections, used.Endpoints)
	sendUsage(callConnections, used.Calls)
	sendUsage(bodyFiles, used.BodyFiles)
	sendUsage(encoderBytes, compress.EncoderUsage())
	send(unmeasured, prometheus.CounterValue, used.Unmeasured)
	send(bodyBytes, prometheus.GaugeValue, used.BodyMemory.Used, "memory")
	send(bodyBytes, prometheus.GaugeValue, used.BodyFileBytes.Used, "files")
	send(bodyLimit, prometheus.GaugeValue, used.BodyMemory.Limit, "memory")
	send(bodyLimit, prometheus.GaugeValue, used.BodyFileBytes.Limit, "files")
}
