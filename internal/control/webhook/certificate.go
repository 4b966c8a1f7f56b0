package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/tls/secret"
)

// Source is a source of the webhook's certificate. GetCertificate returns the certificate for a handshake, like the
// field of tls.Config.
type Source interface {
	GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
}

// watchPeriod is the interval at which the server asks its source for the certificate, so that a problem is reported
// although no client connects.
const watchPeriod = 5 * time.Second

// state describes the certificate of the webhook at one moment.
type state struct {
	// readable is true if the newest certificate of the source can be used.
	readable bool
	// until is the end of the validity of the certificate in use. It is zero if there is no certificate.
	until    time.Time
	verdicts []*report.Verdict
}

// stateOf asks a source for its certificate.
func stateOf(source Source, now time.Time) *state {
	s := &state{}
	pair, err := source.GetCertificate(nil)
	if pair != nil {
		s.until = pair.Leaf.NotAfter
	}
	files, ok := source.(*Files)
	if ok && err == nil {
		err = files.failure()
	}
	s.readable = err == nil
	// The certificate that the leader keeps is reported on its Secret.
	if p := problemOf(pair, err, now); ok && p != nil {
		s.verdicts = []*report.Verdict{{
			Object: ir.Ref{Kind: "File", Name: files.certificate}, Problems: []report.Problem{*p},
		}}
	}
	return s
}

// problemOf returns the problem of the files with the certificate, or nil. pair is the certificate in use, and err the
// reason why the files cannot be used at present.
func problemOf(pair *tls.Certificate, err error, now time.Time) *report.Problem {
	const (
		rejected = report.Meanwhile + "the API server cannot connect, and does what failurePolicy says"
		failing  = "the admission webhook has no certificate: %v: write the certificate and its key there" + rejected
		former   = "the certificate of the admission webhook cannot be read: %v: write a certificate and its key " +
			"there" + report.Meanwhile + "the previous one is used, which expires on %s"
	)
	if pair == nil {
		return notReady(report.Error, failing, err)
	}
	remedy := "write a new certificate and its key there"
	if err != nil {
		remedy = fmt.Sprintf("its successor cannot be read, either: %v", err)
	}
	valid := secret.PeriodOf(pair.Leaf)
	switch valid.At(now) {
	case secret.Expired:
		return notReady(report.Error, "the certificate of the admission webhook expired on %s: %s"+rejected,
			report.Date(valid.Until), remedy)
	case secret.NotYetValid:
		return notReady(report.Error, "the certificate of the admission webhook is not valid before %s: %s, or "+
			"correct the clock"+rejected, report.Date(valid.From), remedy)
	case secret.Valid:
	}
	if err != nil {
		return notReady(report.Warning, former, err, report.Date(valid.Until))
	}
	return nil
}

func notReady(severity report.Severity, format string, args ...any) *report.Problem {
	return &report.Problem{Severity: severity, Reason: report.WebhookNotReady, Message: fmt.Sprintf(format, args...)}
}

// Verdicts returns the problem of the files with the certificate, if there is one.
func (s *Server) Verdicts() []*report.Verdict {
	if now := s.state.Load(); now != nil {
		return now.verdicts
	}
	return nil
}

// Changed returns a channel that receives a value when the result of Verdicts has changed.
func (s *Server) Changed() <-chan struct{} { return s.changes }

// watch asks the current source for its certificate when it was configured, and at intervals, until ctx ends.
func (s *Server) watch(ctx context.Context) {
	again := time.NewTicker(watchPeriod)
	defer again.Stop()
	for {
		select {
		case <-s.configured:
		case <-again.C:
		case <-ctx.Done():
			return
		}
		var now *state
		if source := s.currentSource(); source != nil {
			now = stateOf(source, time.Now())
		}
		before := s.Verdicts()
		s.state.Store(now)
		if !slices.EqualFunc(before, s.Verdicts(), (*report.Verdict).Equal) {
			s.changes.Send()
		}
	}
}

var errNoSource = errors.New("the admission webhook has no source of certificates")

var (
	expiry = prometheus.NewDesc("k8singress_admission_certificate_expire_time_seconds",
		"The time at which the certificate of the admission webhook expires, in seconds since 1970. 0 means that "+
			"there is no certificate. Only with the webhook.", nil, nil)
	readable = prometheus.NewDesc("k8singress_admission_certificate_readable",
		"1 if the files or the Secret with the certificate of the admission webhook can be used, otherwise 0. "+
			"Meanwhile, the previous certificate stays in use. Only with the webhook.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Server) Describe(to chan<- *prometheus.Desc) {
	to <- expiry
	to <- readable
}

// Collect implements prometheus.Collector. It does not wait for the files, which may be on a volume that does not
// respond.
func (s *Server) Collect(to chan<- prometheus.Metric) {
	now := s.state.Load()
	if now == nil {
		return
	}
	until, can := 0.0, 0.0
	if !now.until.IsZero() {
		until = float64(now.until.Unix())
	}
	if now.readable {
		can = 1
	}
	to <- prometheus.MustNewConstMetric(expiry, prometheus.GaugeValue, until)
	to <- prometheus.MustNewConstMetric(readable, prometheus.GaugeValue, can)
}
