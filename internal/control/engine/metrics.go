package engine

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/k8singress/k8singress/internal/http/meter"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tls/certs"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
	"github.com/k8singress/k8singress/internal/upstream/health"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

// metrics holds the metrics of the main loop. Their values survive configuration reloads, and each Caddy configuration
// registers them in its own registry.
type metrics struct {
	reloads         prometheus.Counter
	endpointUpdates prometheus.Counter
	applySeconds    prometheus.Histogram
	applied         prometheus.Gauge
	certificates    *prometheus.GaugeVec
	ports           *prometheus.GaugeVec
}

func newMetrics() *metrics {
	m := &metrics{
		reloads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "k8singress_config_reloads_total",
			Help: "The number of times that the controller reloaded Caddy's configuration, because parts that the " +
				"controller needs were missing. Usually zero.",
		}),
		endpointUpdates: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "k8singress_endpoint_updates_total",
			Help: "The number of changes of a backend's endpoints.",
		}),
		applySeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "k8singress_apply_duration_seconds",
			Help:    "The duration of one run of translation, rendering and apply, in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8),
		}),
		applied: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "k8singress_last_apply_timestamp_seconds",
			Help: "The end of the last run of translation, rendering and apply, in seconds since 1970.",
		}),
		certificates: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "k8singress_certificate_problems",
			Help: "The number of problems with Secrets and their certificates, by reason.",
		}, []string{"reason"}),
		ports: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "k8singress_refused_ports",
			Help: "The number of requested TCP and UDP ports that are not open, by reason: another process or " +
				"Service uses the port, Services may not open it, or its entry in a ConfigMap is invalid.",
		}, []string{"reason"}),
	}
	// Initialize the problem counts for all label values, so that each time series exists with the value 0 from the
	// start.
	m.countProblems(&report.Report{}, &settings.Config{})
	return m
}

// Collectors returns the metrics of the engine, for registration with the registry of a Caddy configuration.
func (e *Engine) Collectors() []prometheus.Collector {
	own := []prometheus.Collector{
		e.metrics.reloads, e.metrics.endpointUpdates, e.metrics.applySeconds, e.metrics.applied,
		e.metrics.certificates, e.metrics.ports, ejected{e.endpoints}, problems{e}, watches{e.source},
		expiries{e.live.Certificates}, unhealthy{e.live.Health}, refused{e.endpoints}, e.live.Table.Meters(),
		meter.Limited{Registry: e.live.Table.Meters()},
		e.live.Table.AccessLogs(),
		e.live.Table.Spans(),
		e.live.Ports().Collector(), e.reviews.Collector(), e.webhook,
	}
	return slices.Concat(own, e.issuance.Collectors(), e.events.Collectors(),
		e.live.Table.Shared().Mirrors.Collectors())
}

// unhealthy is a prometheus.Collector that counts the unhealthy endpoints at each scrape.
type unhealthy struct{ checker *health.Checker }

var unhealthyEndpoints = prometheus.NewDesc("k8singress_unhealthy_endpoints",
	"The number of endpoints of a backend that fail their health check. Backends without a health check are not "+
		"included.",
	[]string{"backend"}, nil)

// Describe implements prometheus.Collector.
func (unhealthy) Describe(to chan<- *prometheus.Desc) { to <- unhealthyEndpoints }

// Collect implements prometheus.Collector.
func (u unhealthy) Collect(to chan<- prometheus.Metric) {
	for id, s := range u.checker.States() {
		to <- prometheus.MustNewConstMetric(unhealthyEndpoints, prometheus.GaugeValue, float64(s.Unhealthy), id)
	}
}

// refused is a prometheus.Collector that counts, at each scrape, the endpoints to which connections are not allowed.
type refused struct{ table *endpoints.Table }

var refusedEndpoints = prometheus.NewDesc("k8singress_refused_endpoints",
	"The number of endpoints of a backend that are left out because connections to their addresses are not allowed, "+
		"by reason. The options reach_allow and reach_deny change which addresses are allowed.",
	[]string{"backend", "reason"}, nil)

// Describe implements prometheus.Collector.
func (refused) Describe(to chan<- *prometheus.Desc) { to <- refusedEndpoints }

// Collect implements prometheus.Collector.
func (r refused) Collect(to chan<- prometheus.Metric) {
	for id, all := range r.table.AllRefused() {
		counts := map[reach.Reason]int{}
		for i := range all {
			counts[all[i].Reason]++
		}
		for reason, n := range counts {
			to <- prometheus.MustNewConstMetric(refusedEndpoints, prometheus.GaugeValue, float64(n), id, string(reason))
		}
	}
}

// ofCertificates lists the reasons of problems that are counted as certificate problems: problems with Secrets that
// contain certificates or certificate authorities.
var ofCertificates = []report.Reason{
	report.SecretNotFound, report.InvalidTLSSecret, report.CertificateMismatch, report.CertificateExpired,
	report.CertificateNotYetValid,
	report.InvalidCA, report.RevocationListExpired,
}

// ofPorts lists the reasons of problems that are counted as port problems: problems that keep a TCP or UDP port closed.
var ofPorts = []report.Reason{report.PortConflict, report.PortNotAllowed, report.InvalidEntry}

// countProblems updates the metrics from a published report. A problem with the reason InvalidEntry is counted as a
// port problem only if its object is a ConfigMap that defines TCP or UDP ports.
func (m *metrics) countProblems(r *report.Report, o *settings.Config) {
	counts := map[report.Reason]int{}
	for _, v := range r.Verdicts {
		for _, p := range v.Problems {
			if p.Reason != report.InvalidEntry || hasPorts(v.Object, o) {
				counts[p.Reason]++
			}
		}
	}
	for _, reason := range ofCertificates {
		m.certificates.WithLabelValues(string(reason)).Set(float64(counts[reason]))
	}
	for _, reason := range ofPorts {
		m.ports.WithLabelValues(string(reason)).Set(float64(counts[reason]))
	}
}

func hasPorts(object ir.Ref, o *settings.Config) bool {
	return object == o.TCPServices.Of(kinds.ConfigMap) || object == o.UDPServices.Of(kinds.ConfigMap)
}

var expiry = prometheus.NewDesc("k8singress_certificate_expire_time_seconds",
	"The time at which a certificate that is in use expires, in seconds since 1970. The certificate is from a "+
		"Secret, or was issued for a host.",
	[]string{"namespace", "secret", "host"}, nil)

// expiries is a prometheus.Collector for the expiry times of certificates. It reads them from the store at each scrape,
// so that no metric has to be updated when a certificate changes.
type expiries struct{ store *certs.Store }

func (expiries) Describe(all chan<- *prometheus.Desc) { all <- expiry }

func (e expiries) Collect(all chan<- prometheus.Metric) {
	for end := range e.store.Ends() {
		all <- prometheus.MustNewConstMetric(expiry, prometheus.GaugeValue, float64(end.At.Unix()), end.Namespace,
			end.Secret, end.Host)
	}
}
