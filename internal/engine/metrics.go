package engine

import "github.com/prometheus/client_golang/prometheus"

// metrics of the pipeline. They outlive Caddy's configurations, and are registered with each.
type metrics struct {
	reloads         *prometheus.CounterVec
	endpointUpdates prometheus.Counter
	applySeconds    prometheus.Histogram
}

// structureReason labels a load that put our part of the structure into the configuration.
const structureReason = "structure"

func newMetrics() *metrics {
	m := &metrics{
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "k8singress_config_reloads_total",
			Help: "How often Caddy was made to load its configuration again, by reason. Zero in steady state.",
		}, []string{"reason"}),
		endpointUpdates: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "k8singress_endpoint_updates_total",
			Help: "How often the endpoints of a backend were replaced.",
		}),
		applySeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "k8singress_apply_duration_seconds",
			Help:    "How long one run of translation, rendering and apply took.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8),
		}),
	}
	// So that the metric is there, and zero, from the start.
	m.reloads.WithLabelValues(structureReason)
	return m
}

// Collectors returns the metrics of the engine, to be registered with the registry of a Caddy configuration.
func (e *Engine) Collectors() []prometheus.Collector {
	own := []prometheus.Collector{e.metrics.reloads, e.metrics.endpointUpdates, e.metrics.applySeconds}
	return append(own, e.issuance.Collectors()...)
}
