package engine

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/k8singress/k8singress/internal/certs"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/settings"
)

// ofCertificates are the reasons of problems with a Secret that certificates, or those who are to verify them, come from.
var ofCertificates = []report.Reason{
	report.SecretNotFound, report.InvalidTLSSecret, report.CertificateMismatch, report.CertificateExpired, report.CertificateNotYetValid,
	report.InvalidCA, report.RevocationListExpired,
}

// ofPorts are the reasons for which a port that is asked for is not open.
var ofPorts = []report.Reason{report.PortConflict, report.PortNotAllowed, report.InvalidEntry}

// countProblems brings the metrics up to date with what is published. Of entries that cannot be read, only those of the
// ConfigMaps of TCP and UDP ports are ports.
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
	name := object.Namespace + "/" + object.Name
	return object.Kind == kinds.ConfigMap && (name == o.TCPServices || name == o.UDPServices)
}

var expiry = prometheus.NewDesc("k8singress_certificate_expire_time_seconds",
	"When a certificate that clients are shown expires, in seconds since 1970. It is from a Secret, or issued for a host.",
	[]string{"namespace", "secret", "host"}, nil)

// expiries collects when certificates end. The table is asked at each scrape, so that a change costs nothing.
type expiries struct{ store *certs.Store }

func (expiries) Describe(all chan<- *prometheus.Desc) { all <- expiry }

func (e expiries) Collect(all chan<- prometheus.Metric) {
	for end := range e.store.Ends() {
		all <- prometheus.MustNewConstMetric(expiry, prometheus.GaugeValue, float64(end.At.Unix()), end.Namespace, end.Secret, end.Host)
	}
}
