package engine

import (
	"crypto/x509"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/certs"
	tlssecret "github.com/k8singress/k8singress/internal/tls/secret"
)

// contents returns the contents of a TLS Secret whose certificate is for host and expires at end.
func contents(t testing.TB, end time.Time, host string) map[string][]byte {
	t.Helper()
	return fixture.Identify(t, nil, &x509.Certificate{DNSNames: []string{host}, NotAfter: end}).Secret()
}

func TestExpiryOfCertificates(t *testing.T) {
	store := certs.NewStore()
	store.Update(map[string]*ir.Certificate{
		"shop.example":   {Secret: ir.Name{Namespace: "a", Name: "shop"}, Origin: ir.ParseRef("Ingress/a/web")},
		"bad.example":    {Secret: ir.Name{Namespace: "a", Name: "bad"}, Origin: ir.ParseRef("Ingress/a/web")},
		"issued.example": {Automated: true, Origin: ir.ParseRef("Ingress/b/web")},
		"later.example":  {Automated: true, Origin: ir.ParseRef("Ingress/b/web")},
		// A Secret may have the same name as a host.
		"named.example": {Secret: ir.Name{Namespace: "b", Name: "issued.example"},
			Origin: ir.ParseRef("Ingress/b/web")},
	})
	store.SetSecret(ir.Name{Namespace: "a", Name: "shop"}, contents(t, time.Unix(1900000000, 0), "shop.example"), true)
	store.SetSecret(ir.Name{Namespace: "a", Name: "bad"}, nil, true)
	expect := func(want map[string]float64) {
		t.Helper()
		if got := gathered(t, expiries{store}); !maps.Equal(got, want) {
			t.Errorf("the metrics are %v, want %v", got, want)
		}
	}
	expect(map[string]float64{"/a/shop": 1900000000})
	store.SetSecret(ir.Name{Namespace: "a", Name: "shop"}, contents(t, time.Unix(2000000000, 0), "shop.example"), true)
	expect(map[string]float64{"/a/shop": 2000000000})
	store.SetSecret(ir.Name{Namespace: "b", Name: "issued.example"},
		contents(t, time.Unix(1800000000, 0), "named.example"), true)
	issued := contents(t, time.Unix(1700000000, 0), "issued.example")
	pair, err := tlssecret.Parse(issued["tls.crt"], issued["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	store.SetIssued("issued.example", pair)
	expect(map[string]float64{"/a/shop": 2000000000, "/b/issued.example": 1800000000, "issued.example/b/": 1700000000})
	store.Update(map[string]*ir.Certificate{"shop.example": nil, "issued.example": nil, "named.example": nil})
	expect(map[string]float64{})
}

// gathered returns the values of gauges by their labels, joined by slashes.
func gathered(t testing.TB, c prometheus.Collector) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for _, family := range fixture.Collect(t, c) {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			all[strings.Join(labels, "/")] = metric.GetGauge().GetValue()
		}
	}
	return all
}

func TestProblemsOfCertificatesAreCounted(t *testing.T) {
	m := newMetrics()
	problem := func(reason report.Reason) report.Problem { return report.Problem{Reason: reason} }
	m.countProblems(&report.Report{Verdicts: []*report.Verdict{
		{Problems: []report.Problem{problem(report.SecretNotFound), problem(report.CertificateExpired)}},
		{Problems: []report.Problem{problem(report.SecretNotFound), problem(report.ServiceNotFound),
			problem(report.InvalidCA)}},
	}}, &settings.Config{})
	want := map[string]float64{
		"SecretNotFound": 2, "CertificateExpired": 1, "InvalidTLSSecret": 0, "CertificateMismatch": 0,
		"CertificateNotYetValid": 0,
		"InvalidCA":              1, "RevocationListExpired": 0,
	}
	if got := gathered(t, m.certificates); !maps.Equal(got, want) {
		t.Errorf("the metrics are %v, want %v", got, want)
	}
	m.countProblems(&report.Report{}, &settings.Config{})
	if got := gathered(t, m.certificates); got["SecretNotFound"] != 0 {
		t.Errorf("problems that are gone are still counted: %v", got)
	}
}

func TestRefusedPortsAreCounted(t *testing.T) {
	m := newMetrics()
	o := &settings.Config{
		TCPServices: ir.Name{Namespace: "ingress", Name: "tcp"},
		UDPServices: ir.Name{Namespace: "ingress", Name: "udp"},
		ConfigMap:   ir.Name{Namespace: "ingress", Name: "options"},
	}
	for _, n := range []int{2, 0} {
		var r report.Report
		for range n {
			// The last ConfigMap has no entries for ports.
			for _, name := range []string{"tcp", "udp", "options"} {
				r.Verdicts = append(r.Verdicts, &report.Verdict{
					Object:   ir.Ref{Kind: "ConfigMap", Namespace: "ingress", Name: name},
					Problems: []report.Problem{{Reason: report.InvalidEntry}, {Reason: report.ServiceNotFound}},
				})
			}
			r.Verdicts = append(r.Verdicts, &report.Verdict{Problems: []report.Problem{{Reason: report.PortConflict}}})
		}
		m.countProblems(&r, o)
		want := map[string]float64{"PortConflict": float64(n), "PortNotAllowed": 0, "InvalidEntry": float64(2 * n)}
		if got := gathered(t, m.ports); !maps.Equal(got, want) {
			t.Errorf("of %d, the metrics are %v", n, got)
		}
	}
}

func BenchmarkExpiryOfCertificates(b *testing.B) {
	store, all := certs.NewStore(), map[string]*ir.Certificate{}
	for i := range 10_000 {
		all[fmt.Sprintf("host-%d.example", i)] = &ir.Certificate{
			Secret: ir.Name{Namespace: "a", Name: fmt.Sprint("tls-", i)}, Origin: ir.ParseRef("Ingress/a/web"),
		}
	}
	store.Update(all)
	data := contents(b, time.Unix(1900000000, 0), "*.example")
	for i := range 10_000 {
		store.SetSecret(ir.Name{Namespace: "a", Name: fmt.Sprint("tls-", i)}, data, true)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(expiries{store})
	for b.Loop() {
		if families, err := registry.Gather(); err != nil || len(families[0].GetMetric()) != 10_000 {
			b.Fatal(err)
		}
	}
}
