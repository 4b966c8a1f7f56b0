package k8singress

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/k8singress/k8singress/internal/front"
	"github.com/k8singress/k8singress/internal/proxy"
)

// resources is what clients take of the process, and what they may take: a prometheus.Collector.
type resources struct{}

var (
	clientsOpen = prometheus.NewDesc("k8singress_client_connections",
		"How many connections HTTP clients have.", nil, nil)
	clientsLimit = prometheus.NewDesc("k8singress_client_connections_limit",
		"How many connections HTTP clients may have; 0 is any number.", nil, nil)
	clientsRefused = prometheus.NewDesc("k8singress_client_connections_refused_total",
		"How many connections of HTTP clients were closed, because there were as many as there may be.", nil, nil)
	endpointsOpen = prometheus.NewDesc("k8singress_endpoint_connections",
		"How many connections to endpoints there are for HTTP, idle ones included.", nil, nil)
	endpointsLimit = prometheus.NewDesc("k8singress_endpoint_connections_limit",
		"The maximum of k8singress_endpoint_connections. One namespace alone may have about eight ninths of it.", nil, nil)
	endpointsRefused = prometheus.NewDesc("k8singress_endpoint_connections_refused_total",
		"How many requests got 503, because the backends of their namespace have as many connections as they may have.", nil, nil)
	bodyBytes = prometheus.NewDesc("k8singress_body_bytes",
		"How many bytes are kept of the bodies of requests and answers, in memory and in files.", []string{"place"}, nil)
	bodyLimit = prometheus.NewDesc("k8singress_body_bytes_limit",
		"How many bytes may be kept of the bodies of requests and answers, in memory and in files.", []string{"place"}, nil)
)

// Describe implements prometheus.Collector.
func (resources) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		clientsOpen, clientsLimit, clientsRefused, endpointsOpen, endpointsLimit, endpointsRefused, bodyBytes, bodyLimit,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (resources) Collect(to chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, float64(value), labels...)
	}
	clients := front.Process().Clients()
	send(clientsOpen, prometheus.GaugeValue, clients.Open)
	send(clientsLimit, prometheus.GaugeValue, clients.Most)
	send(clientsRefused, prometheus.CounterValue, clients.Refused)
	endpoints := proxy.UsedDescriptors()
	send(endpointsOpen, prometheus.GaugeValue, endpoints.Used)
	send(endpointsLimit, prometheus.GaugeValue, endpoints.Most)
	send(endpointsRefused, prometheus.CounterValue, endpoints.Refused)
	now, most := proxy.KeptBodies()
	send(bodyBytes, prometheus.GaugeValue, now.Memory, "memory")
	send(bodyBytes, prometheus.GaugeValue, now.Files, "files")
	send(bodyLimit, prometheus.GaugeValue, most.Memory, "memory")
	send(bodyLimit, prometheus.GaugeValue, most.Files, "files")
}
