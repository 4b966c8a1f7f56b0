// Package nginxmetrics writes the state of the controller as metrics with the names of ingress-nginx, so that
// dashboards and alerts for ingress-nginx keep working. Names, types and labels are the same as in ingress-nginx
// v1.15.1.
package nginxmetrics

import (
	"cmp"
	"crypto/x509"
	"iter"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/control/webhook"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/process/exposition"
	"github.com/k8singress/k8singress/internal/process/procstat"
	"github.com/k8singress/k8singress/internal/tls/certs"
)

// State is the state of the controller at one moment.
type State struct {
	// Class is the spec.controller of the controller's IngressClasses. Namespace and Pod name the controller's pod.
	Class, Namespace, Pod string
	// Release and Build are the versions of the controller and of its source code.
	Release, Build string
	Applied        engine.Applied
	// Lease is the name of the Lease, or empty without leader election.
	Lease   string
	Leader  bool
	Orphans []engine.Orphan
	// Certificates are the certificates of all hosts.
	Certificates iter.Seq[certs.Use]
	Connections  Connections
	// Reviews is nil without the admission webhook.
	Reviews *webhook.Counts
	// Process is nil if the system does not tell the figures of the process.
	Process *procstat.Stat
}

// Connections are the numbers of nginx's status page.
type Connections struct {
	Active, Writing, Waiting    int64
	Accepted, Handled, Requests int64
}

// Repository is the value of a label of build_info.
const Repository = "https://github.com/k8singress/k8singress"

// writer adds the constant labels to metrics.
type writer struct {
	*exposition.Writer
	constant []exposition.Label
}

// Constant returns the labels that all metrics of the controller have.
func (s *State) Constant() []exposition.Label {
	return []exposition.Label{
		{Name: "controller_class", Value: s.Class}, {Name: "controller_namespace", Value: s.Namespace},
		{Name: "controller_pod", Value: s.Pod},
	}
}

// family begins the family with a name without its prefix.
func (w *writer) family(kind exposition.Kind, name, help string) {
	w.Family(exposition.Family{Name: settings.NginxPrefix + name, Help: help, Kind: kind})
}

// value writes a metric with the constant labels and more labels, which are pairs of names and values.
func (w *writer) value(value float64, more ...string) {
	labels := make([]exposition.Label, 0, len(w.constant)+len(more)/2)
	labels = append(labels, w.constant...)
	w.Value(value, appendPairs(labels, more)...)
}

func appendPairs(labels []exposition.Label, pairs []string) []exposition.Label {
	for i := 0; i+1 < len(pairs); i += 2 {
		labels = append(labels, exposition.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	return labels
}

// single writes a family with one metric.
func (w *writer) single(kind exposition.Kind, name, help string, value float64, more ...string) {
	w.family(kind, name, help)
	w.value(value, more...)
}

// Write writes all metrics of the state.
func (s *State) Write(to *exposition.Writer) {
	w := &writer{to, s.Constant()}
	s.writeApplied(w)
	s.writeOrphans(w)
	s.writeReviews(w)
	s.writeCertificates(w)
	s.writeConnections(w)
	s.writeProcess(w)
}

func (s *State) writeApplied(w *writer) {
	w.single(exposition.Gauge, "build_info", "Always 1. The labels describe the running version.", 1,
		"build", s.Build, "release", s.Release, "repository", Repository)
	a, complete, hash, since := s.Applied, 0.0, 0.0, 0.0
	if a.Complete {
		complete, hash = 1, float64(a.Hash)
	}
	if !a.Since.IsZero() {
		since = float64(a.Since.Unix())
	}
	w.single(exposition.Gauge, "config_hash",
		"A hash of the configuration in effect, without endpoints. 0 while the last change has failed.", hash)
	w.single(exposition.Gauge, "config_last_reload_successful",
		"1 if the last change of the configuration is in effect completely, otherwise 0.", complete)
	w.single(exposition.Gauge, "config_last_reload_successful_timestamp_seconds",
		"The time of the last change that was in effect completely, in seconds since 1970.", since)
	w.single(exposition.Counter, "success",
		"The number of changes of the configuration that were in effect completely.", float64(a.Succeeded))
	w.single(exposition.Counter, "errors",
		"The number of changes of the configuration of which a part could not be put into effect.", float64(a.Failed))
	if s.Lease != "" {
		w.single(exposition.Gauge, "leader_election_status", "1 if this replica is the leader, otherwise 0.",
			number(s.Leader), "name", s.Lease)
	}
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (s *State) writeOrphans(w *writer) {
	w.family(exposition.Gauge, "orphan_ingress",
		"1 if a Service of the Ingress does not exist (type no-service), or has no endpoints (type no-endpoint).")
	for i := range s.Orphans {
		o := &s.Orphans[i]
		of := []string{"namespace", o.Ingress.Namespace, "ingress", o.Ingress.Name, "type"}
		w.value(number(o.NoService), append(of, "no-service")...)
		w.value(number(o.NoEndpoint), append(of, "no-endpoint")...)
	}
}

// writeReviews writes the metrics of the admission webhook. check_success and check_errors do not have the labels
// namespace and ingress of ingress-nginx: the names are the client's, and an Ingress that is refused is never stored.
// So clients could create series without limit.
func (s *State) writeReviews(w *writer) {
	r := s.Reviews
	if r == nil {
		return
	}
	w.single(exposition.Counter, "check_success", "The number of Ingresses that the admission webhook has allowed.",
		float64(r.Allowed))
	w.single(exposition.Counter, "check_errors", "The number of Ingresses that the admission webhook has refused.",
		float64(r.Refused))
	last := &r.Last
	w.single(exposition.Gauge, "admission_tested_ingresses",
		"The number of Ingresses against which the webhook last reviewed an Ingress.", float64(last.Ingresses))
	w.single(exposition.Gauge, "admission_tested_duration",
		"The duration of the last review in seconds, without reading the request.", last.Reviewed.Seconds())
	w.single(exposition.Gauge, "admission_roundtrip_duration",
		"The duration of the last review in seconds, with reading the request.", last.Total.Seconds())
	const nothing = "Always 0, because a review renders no configuration."
	for _, name := range []string{"render_ingresses", "render_duration", "config_size"} {
		w.single(exposition.Gauge, "admission_"+name, nothing, 0)
	}
}

// writeCertificates writes the metrics of certificates, which have other labels. As in ingress-nginx, only the leader
// has the times of expiry, and their label namespace is the controller's namespace.
func (s *State) writeCertificates(w *writer) {
	if s.Leader {
		w.family(exposition.Gauge, "ssl_expire_time_seconds",
			"The time at which the certificate of a host expires, in seconds since 1970.")
		for use := range s.Certificates {
			w.Value(float64(use.Leaf.NotAfter.Unix()), appendPairs(nil, []string{
				"class", s.Class, "host", hostOf(use), "namespace", s.Namespace, "secret_name", use.Secret,
			})...)
		}
	}
	w.family(exposition.Gauge, "ssl_certificate_info", "Always 1. The labels describe the certificate of a host.")
	for use := range s.Certificates {
		issuer, organization, serial := &use.Leaf.Issuer, "", serialOf(use.Leaf)
		if names := issuer.Organization; len(names) > 0 {
			organization = names[0]
		}
		w.Value(1, appendPairs(nil, []string{
			"class", s.Class, "host", hostOf(use), "identifier", short(issuer.SerialNumber) + "-" + serial,
			"issuer_common_name", short(issuer.CommonName),
			"issuer_organization", short(organization),
			"namespace", use.Namespace, "public_key_algorithm", use.Leaf.PublicKeyAlgorithm.String(),
			"secret_name", use.Secret, "serial_number", serial,
		})...)
	}
}

// maxLabel is the maximum size of a label from a certificate in bytes, and of a serial number in bits. The names in a
// certificate can be as long as its Secret, and the metrics repeat them for each host.
const maxLabel = 512

func short(text string) string { return text[:min(len(text), maxLabel)] }

// serialOf returns the serial number of a certificate, or "" if it is too long. RFC 5280 allows 20 bytes.
func serialOf(c *x509.Certificate) string {
	if c.SerialNumber.BitLen() > maxLabel {
		return ""
	}
	return c.SerialNumber.String()
}

// hostOf returns the host of a certificate. ingress-nginx calls the default host "_".
func hostOf(use certs.Use) string { return cmp.Or(use.Host, "_") }

func (s *State) writeConnections(w *writer) {
	c := &s.Connections
	w.family(exposition.Gauge, "nginx_process_connections", "The number of connections of HTTP clients, by state.")
	w.value(float64(c.Active), "state", "active")
	w.value(0, "state", "reading")
	w.value(float64(c.Waiting), "state", "waiting")
	w.value(float64(c.Writing), "state", "writing")
	w.family(exposition.Counter, "nginx_process_connections_total",
		"The number of connections of HTTP clients that were accepted, and that were not closed at a limit.")
	w.value(float64(c.Accepted), "state", "accepted")
	w.value(float64(c.Handled), "state", "handled")
	w.single(exposition.Counter, "nginx_process_requests_total", "The number of HTTP requests.",
		float64(c.Requests))
}

func (s *State) writeProcess(w *writer) {
	p := s.Process
	if p == nil {
		return
	}
	w.single(exposition.Gauge, "nginx_process_num_procs", "The number of processes.", 1)
	w.single(exposition.Counter, "nginx_process_cpu_seconds_total", "The processor time of the process in seconds.",
		p.CPU.Seconds())
	w.single(exposition.Gauge, "nginx_process_oldest_start_time_seconds",
		"The time at which the process started, in seconds since 1970.", float64(p.Start.Unix()))
	w.single(exposition.Gauge, "nginx_process_resident_memory_bytes", "The resident memory of the process in bytes.",
		float64(p.Resident))
	w.single(exposition.Gauge, "nginx_process_virtual_memory_bytes", "The virtual memory of the process in bytes.",
		float64(p.Virtual))
	if p.HasIO {
		w.single(exposition.Counter, "nginx_process_read_bytes_total",
			"The number of bytes that the process has read from disks.", float64(p.ReadBytes))
		w.single(exposition.Counter, "nginx_process_write_bytes_total",
			"The number of bytes that the process has written to disks.", float64(p.WrittenBytes))
	}
}
