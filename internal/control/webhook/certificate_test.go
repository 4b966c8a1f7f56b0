package webhook_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/control/webhook"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestProblemsOfFiles checks that the state of the files is reported although no client connects, as a verdict and as
// metrics, and that it follows the files and the clock.
func TestProblemsOfFiles(t *testing.T) { synctest.Test(t, problemsOfFiles) }

func problemsOfFiles(t *testing.T) {
	s := webhook.NewServer(webhook.NewHandler(nil, zap.NewNop()), zap.NewNop())
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	defer running.Wait()
	defer cancel()
	folder := t.TempDir()
	certificate, key := filepath.Join(folder, "cert"), filepath.Join(folder, "key")
	// Run begins before the configuration is complete, and may have to wait for it.
	<-time.After(time.Minute) // In the bubble, it takes no time.
	if got := gauges(t, s); len(got) > 0 || len(s.Verdicts()) > 0 {
		t.Errorf("before Configure: %v, %v", got, s.Verdicts())
	}
	// Run needs no address to read the files.
	s.Configure("", webhook.NewFiles(certificate, key, zap.NewNop()))
	now := time.Now()
	write := func(i *fixture.Identity) {
		for file, text := range map[string][]byte{certificate: i.PEM(), key: i.KeyPEM()} {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	valid := func(from, until time.Duration) *fixture.Identity {
		return fixture.Identify(t, nil, &x509.Certificate{NotBefore: now.Add(from), NotAfter: now.Add(until)})
	}
	first, next, last := valid(-time.Hour, time.Hour), valid(2*time.Hour, 3*time.Hour), valid(-time.Hour, 9*time.Hour)
	for _, c := range []struct {
		name     string
		change   func()
		severity report.Severity
		message  string
		until    time.Time
		readable float64
	}{
		{"missing", func() {}, report.Error, "cert: no such file or directory: write the certificate", time.Time{}, 0},
		{"written", func() { write(first) }, "", "", now.Add(time.Hour), 1},
		{"half written", func() { _ = os.WriteFile(certificate, next.PEM()[:99], 0o600) }, report.Warning,
			"the previous one is used, which expires on 2000-01-01 at 01:01:00 UTC", now.Add(time.Hour), 0},
		{"expired meanwhile", func() { <-time.After(time.Hour) }, report.Error,
			"expired on 2000-01-01 at 01:01:00 UTC: its successor cannot be read, either", now.Add(time.Hour), 0},
		{"too early", func() { write(next) }, report.Error, "is not valid before 2000-01-01 at 02:01:00 UTC",
			now.Add(3 * time.Hour), 1},
		{"in time", func() { <-time.After(time.Hour) }, "", "", now.Add(3 * time.Hour), 1},
		{"expired", func() { <-time.After(time.Hour) }, report.Error, "on 2000-01-01 at 03:01:00 UTC: write a new",
			now.Add(3 * time.Hour), 1},
		{"renewed", func() { write(last) }, "", "", now.Add(9 * time.Hour), 1},
	} {
		c.change()
		// The server reads the files every five seconds.
		<-time.After(6 * time.Second)
		synctest.Wait()
		if fault := problemFault(s, ir.Ref{Kind: "File", Name: certificate}, c.severity, c.message); fault != "" {
			t.Errorf("%s: %s", c.name, fault)
		}
		until := 0.0
		if !c.until.IsZero() {
			until = float64(c.until.Unix())
		}
		if got := gauges(t, s); got["expire_time_seconds"] != until || got["readable"] != c.readable || len(got) != 2 {
			t.Errorf("%s: the metrics are %v, want %v and %v", c.name, got, until, c.readable)
		}
		select {
		case <-s.Changed():
		default:
			t.Errorf("%s: no change was announced", c.name)
		}
	}
	s.Configure("", nil)
	synctest.Wait()
	if got := gauges(t, s); len(got) > 0 || len(s.Verdicts()) > 0 {
		t.Errorf("without a webhook: %v, %v", got, s.Verdicts())
	}
}

// problemFault returns what is wrong with the verdicts of the server, or "". The server must have one problem with the
// message, or none if the message is empty.
func problemFault(s *webhook.Server, of ir.Ref, severity report.Severity, message string) string {
	all := s.Verdicts()
	if message == "" {
		if len(all) > 0 {
			return fmt.Sprintf("%+v", all)
		}
		return ""
	}
	if len(all) != 1 || all[0].Object != of || len(all[0].Problems) != 1 {
		return fmt.Sprintf("the verdicts are %+v", all)
	}
	p := all[0].Problems[0]
	if p.Severity != severity || p.Reason != report.WebhookNotReady || !strings.Contains(p.Message, message) {
		return fmt.Sprintf("%+v", p)
	}
	return ""
}

// gauges returns the metrics of the certificate by the ends of their names.
func gauges(t *testing.T, s *webhook.Server) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		name := strings.TrimPrefix(f.GetName(), "k8singress_admission_certificate_")
		all[name] = f.GetMetric()[0].GetGauge().GetValue()
	}
	return all
}
