package k8singress

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/k8singress/k8singress/internal/http/compress"
	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/process/budget"
)

// resources is a prometheus.Collector for the resources of the process that clients use, and their limits.
type resources struct{}

// usage describes a use of file descriptors or memory by three metrics.
type usage struct{ used, limit, refused *prometheus.Desc }

func newUsage(name, used, limit, refused string) usage {
	return usage{
		prometheus.NewDesc(name, used, nil, nil), prometheus.NewDesc(name+"_limit", limit, nil, nil),
		prometheus.NewDesc(name+"_refused_total", refused, nil, nil),
	}
}

var (
	clientConnections = newUsage("k8singress_client_connections", "How many connections HTTP clients have.",
		"How many connections HTTP clients may have; 0 is any number.",
		"How many connections of HTTP clients were closed, because there were as many as there may be.")
	clientsRefused = prometheus.NewDesc("k8singress_client_connections_refused_by_address_total",
		"How many of the connections in k8singress_client_connections_refused_total were closed because the address "+
			"of their client had as many as it may have.", nil, nil)
	clientsEnded = prometheus.NewDesc("k8singress_client_connections_ended_total",
		"How many connections of HTTP clients that were idle, or whose requests were silent, were closed so that "+
			"new ones had room.", nil, nil)
	probeConnections = newUsage("k8singress_probe_connections",
		"How many connections to the health port there are.",
		"The maximum of k8singress_probe_connections; 0 is any number.",
		"How many connections to the health port were closed, because there were as many as there may be.")
	openRequests = newUsage("k8singress_request_bytes",
		"How many bytes count for the requests of HTTP/2 and HTTP/3 that are under way: 16 KiB and the head for each.",
		"The maximum of k8singress_request_bytes. One client address alone may have about eight ninths of it.",
		"How many requests of HTTP/2 and HTTP/3 got 503, because there was no room for them.")
	endpointConnections = newUsage("k8singress_endpoint_connections",
		"How many connections to endpoints there are for HTTP, idle ones included.",
		"The maximum of k8singress_endpoint_connections; 0 is any number. One namespace alone may have about "+
			"eight ninths of it.",
		"How many requests got 503, because the backends of their namespace have as many connections as they may have.")
	callConnections = newUsage("k8singress_call_connections",
		"How many connections to services for external authentication and to mirrors there are, idle ones included.",
		"The maximum of k8singress_call_connections; 0 is any number. One namespace alone may have about eight "+
			"ninths of it.",
		"How many calls were not made, because the Ingresses of their namespace have as many connections as they "+
			"may have: the request for an external authentication got 503, and a mirror got no copy.")
	bodyFiles = newUsage("k8singress_body_files",
		"How many temporary files there are for bodies of requests and responses.",
		"The maximum of k8singress_body_files; 0 is any number. One namespace alone may have about eight ninths of it.",
		"How many bodies were passed on as they came in, because they got no temporary file: the backends of "+
			"their namespace have as many as they may have, or the file could not be created.")
	unmeasured = prometheus.NewDesc("k8singress_fastcgi_bodies_refused_total",
		"How many requests got 503, because FastCGI needs the length of their body, and there was no room to "+
			"keep the body until its end.", nil, nil)
	encoderBytes = newUsage("k8singress_encoder_bytes",
		"How many bytes the encoders of compressed responses take.",
		"The maximum of k8singress_encoder_bytes; 0 is any number. One namespace alone may have about eight "+
			"ninths of it.",
		"How many responses were not compressed, because there was no room for an encoder.")
	bodyBytes = prometheus.NewDesc("k8singress_body_bytes",
		"How many bytes are kept of the bodies of requests and answers, in memory and in files.",
		[]string{"place"}, nil)
	bodyLimit = prometheus.NewDesc("k8singress_body_bytes_limit",
		"How many bytes may be kept of the bodies of requests and answers, in memory and in files. One namespace "+
			"alone may have about eight ninths of them.", []string{"place"}, nil)
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
