package engine

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/k8singress/k8singress/internal/live"
)

var (
	passedAll = prometheus.NewDesc("k8singress_passthrough_connections_total",
		"How many TLS connections have been passed through to the backend of their host.", nil, nil)
	passedOpen = prometheus.NewDesc("k8singress_passthrough_connections",
		"How many TLS connections are passed through to the backend of their host at this moment.", nil, nil)
)

// passings counts connections that are passed through. The table is asked at each scrape.
type passings struct{ table *live.Table }

// Describe implements prometheus.Collector.
func (passings) Describe(to chan<- *prometheus.Desc) { to <- passedAll; to <- passedOpen }

// Collect implements prometheus.Collector.
func (p passings) Collect(to chan<- prometheus.Metric) {
	all, open := p.table.Passed()
	to <- prometheus.MustNewConstMetric(passedAll, prometheus.CounterValue, float64(all))
	to <- prometheus.MustNewConstMetric(passedOpen, prometheus.GaugeValue, float64(open))
}
