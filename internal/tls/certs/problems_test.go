package certs_test

import (
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/certs"
)

// problemLines returns the problems of a store, one line each.
func problemLines(s *certs.Store) []string {
	var lines []string
	for _, v := range s.Problems() {
		for _, p := range v.Problems {
			lines = append(lines, fmt.Sprintf("%s %s %s %s: %s", p.Severity, p.Reason, v.Object, p.Field, p.Message))
		}
	}
	return lines
}

func expectProblems(t *testing.T, s *certs.Store, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, problemLines(s)); d != "" {
		t.Error(d)
	}
}

func TestProblemsNameTheReferringObjects(t *testing.T) {
	s := certs.NewStore()
	s.Update(map[string]*ir.Certificate{
		"a.example": {Secret: named("a/bad"), Origin: ir.ParseRef("Ingress/a/one")},
		"b.example": {Secret: named("a/bad"), Origin: ir.ParseRef("Ingress/a/one")},
		"c.example": {Secret: named("a/bad"), Origin: ir.ParseRef("Ingress/a/two")},
		"d.example": {Secret: named("a/good"), Origin: ir.ParseRef("Ingress/a/three")},
	})
	s.SetSecret(ir.Name{Namespace: "a", Name: "good"}, fixture.Certificate(t, "d.example").Secret(), true)
	s.SetSecret(ir.Name{Namespace: "a", Name: "bad"}, garbage(), true)
	const garbled = "spec.tls: Secret a/bad: tls.key has no PEM block; the default certificate is used until it " +
		"is fixed"
	expectProblems(t, s, "error InvalidTLSSecret Ingress/a/one "+garbled,
		"error InvalidTLSSecret Ingress/a/two "+garbled)

	good := fixture.Certificate(t, "*.example")
	s.SetSecret(ir.Name{Namespace: "a", Name: "bad"}, good.Secret(), true)
	expectProblems(t, s)
	s.SetSecret(ir.Name{Namespace: "a", Name: "bad"}, map[string][]byte{"tls.crt": good.PEM()}, true)
	const half = "spec.tls: Secret a/bad: tls.key is empty: put the private key there, in PEM; " +
		"the last good certificate is used until it is fixed"
	expectProblems(t, s, "error InvalidTLSSecret Ingress/a/one "+half, "error InvalidTLSSecret Ingress/a/two "+half)
}

func TestCertificateOfAnotherName(t *testing.T) {
	s := certs.NewStore()
	s.Update(changes("a.example", "a/tls", "b.example", "a/tls", "a.b.example", "a/tls", "*.example", "a/tls"))
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"},
		fixture.Certificate(t, "a.example", "*.other.example").Secret(), true)
	const begin = `warning CertificateMismatch Ingress/a/web spec.tls: Secret a/tls: its certificate is for `
	expectProblems(t, s, begin+`"a.example", "*.other.example", not for *.example, a.b.example, b.example; `+
		`the default certificate is used there until the Secret has a certificate for that name; * matches one label`)

	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, fixture.Certificate(t, "a.example", "*.example").Secret(), true)
	expectProblems(t, s, begin+`"a.example", "*.example", not for a.b.example; `+
		`the default certificate is used there until the Secret has a certificate for that name; * matches one label`)
	s.Update(changes("a.b.example", ""))
	expectProblems(t, s)

	s.Update(changes("shop.test", "a/tls", "*.test", "a/wild"))
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, fixture.Authority(t, nil, "a.example").Secret(), true)
	s.SetSecret(ir.Name{Namespace: "a", Name: "wild"}, fixture.Certificate(t, "*.test").Secret(), true)
	s.Update(changes("b.example", "", "*.example", ""))
	expectProblems(t, s, begin+`"a.example", not for shop.test; `+
		`the certificate of a wildcard host, or else the default certificate, is used there until the Secret `+
		`has a certificate for that name`)
	s.Update(changes("shop.test", "a/wild"))
	expectProblems(t, s)
}

// TestGarbageInAStrayIsOneProblem checks that an unreadable Secret is the only problem, even if its last valid
// certificate did not cover the host.
func TestGarbageInAStrayIsOneProblem(t *testing.T) {
	s := certs.NewStore()
	s.Update(changes("a.example", "a/tls"))
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, fixture.Certificate(t, "b.example").Secret(), true)
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, garbage(), true)
	if got := problemLines(s); len(got) != 1 || !strings.HasPrefix(got[0], "error InvalidTLSSecret") {
		t.Errorf("said: %q", got)
	}
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, nil, false)
	expectProblems(t, s)
}

func TestManyHostsAreNotAllNamed(t *testing.T) {
	s, all := certs.NewStore(), map[string]*ir.Certificate{}
	for i := range 1_000 {
		all[fmt.Sprintf("host-%04d.example", i)] = &ir.Certificate{Secret: named("a/tls"),
			Origin: ir.ParseRef("Ingress/a/web")}
	}
	s.Update(all)
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"},
		fixture.Expired(t, strings.Repeat("x", 60)+".other.example").Secret(), true)
	got := problemLines(s)
	if len(got) != 2 {
		t.Fatalf("%d problems, want that of the names and that of the time", len(got))
	}
	for _, line := range got {
		if !strings.Contains(line, "host-0003.example and 996 more") || len(line) > 500 {
			t.Errorf("said: %s", line)
		}
	}
}

// TestValidityEnds checks Stale with a certificate whose validity begins and ends while the store holds it.
func TestValidityEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := certs.NewStore()
		s.Update(changes("a.example", "a/tls", "b.example", "a/tls"))
		if s.Stale() {
			t.Error("there is something new to say of nothing")
		}
		begin := time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC)
		s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, fixture.Identify(t, nil, &x509.Certificate{
			DNSNames: []string{"*.example"}, NotBefore: begin, NotAfter: begin.Add(time.Hour),
		}).Secret(), true)
		if s.Stale() {
			t.Error("there is something new to say before the first time")
		}
		expectProblems(t, s,
			"warning CertificateNotYetValid Ingress/a/web spec.tls: Secret a/tls: its certificate for a.example, "+
				"b.example is not valid before 2000-01-02 at 00:00:00 UTC, and clients reject it until then; "+
				"put a certificate there that is valid now, or correct the clock")
		wantTurn(t, s, time.Until(begin))
		expectProblems(t, s)
		wantTurn(t, s, time.Until(begin.Add(time.Hour+time.Nanosecond)))
		expectProblems(t, s,
			"warning CertificateExpired Ingress/a/web spec.tls: Secret a/tls: its certificate for a.example, "+
				"b.example expired on 2000-01-02 at 01:00:00 UTC, and clients reject it; put a new certificate there")
		if s.Stale() {
			t.Error("there is something new to say though nothing ended")
		}
	})
}

// wantTurn checks that the store becomes stale after exactly this time.
func wantTurn(t *testing.T, s *certs.Store, after time.Duration) {
	t.Helper()
	<-time.After(after - time.Nanosecond)
	if s.Stale() {
		t.Error("there is something new to say too early")
	}
	<-time.After(time.Nanosecond)
	if !s.Stale() {
		t.Error("there is nothing new to say")
	}
}

// TestLastGoodCertificateEnds checks that the last valid certificate is used until it expires, and that the message
// changes then.
func TestLastGoodCertificateEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := certs.NewStore()
		s.Update(changes("a.example", "a/tls"))
		s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, fixture.Certificate(t, "a.example").Secret(), true)
		s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, garbage(), true)
		const line = "error InvalidTLSSecret Ingress/a/web spec.tls: Secret a/tls: tls.key has no PEM block; " +
			"the %s certificate is used until it is fixed"
		expectProblems(t, s, fmt.Sprintf(line, "last good"))
		wantTurn(t, s, 48*time.Hour+time.Nanosecond)
		expectProblems(t, s, fmt.Sprintf(line, "default"))
	})
}

func TestProblemsOfTheDefaultCertificateNameTheOption(t *testing.T) {
	s := certs.NewStore()
	s.Update(map[string]*ir.Certificate{
		"":          {Secret: named("a/tls"), Origin: ir.ParseRef("Secret/a/tls")},
		"a.example": {Secret: named("a/tls"), Origin: ir.ParseRef("Ingress/a/web")},
	})
	expectProblems(t, s)
	const begin = " Secret/a/tls : the option default_certificate names Secret a/tls"
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, nil, false)
	expectProblems(t, s, "error SecretNotFound"+begin+
		", which does not exist or may not be read; a self-signed certificate is used until it does")
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, garbage(), true)
	expectProblems(t, s,
		"error InvalidTLSSecret Ingress/a/web spec.tls: Secret a/tls: tls.key has no PEM block; "+
			"the default certificate is used until it is fixed",
		"error InvalidTLSSecret"+begin+
			": tls.key has no PEM block; a self-signed certificate is used until it is fixed")
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, fixture.Certificate(t, "a.example").Secret(), true)
	expectProblems(t, s)
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, nil, false)
	expectProblems(t, s, "error SecretNotFound"+begin+
		", which does not exist or may not be read; the last good certificate is used until it does")

	s.Update(changes("a.example", ""))
	past := fixture.Identify(t, nil, &x509.Certificate{NotBefore: time.Unix(1_000_000_000, 0),
		NotAfter: time.Unix(1_600_000_000, 0)})
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, past.Secret(), true)
	expectProblems(t, s, "warning CertificateExpired"+begin+": its certificate expired on 2020-09-13 at 12:26:40 UTC, "+
		"and clients reject it; put a new certificate there")
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, garbage(), true)
	expectProblems(t, s, "error InvalidTLSSecret"+begin+
		": tls.key has no PEM block; a self-signed certificate is used until it is fixed")
}

// TestWarningsLeaveTheObjectAccepted checks that an object is not accepted only if its Secret cannot be read.
func TestWarningsLeaveTheObjectAccepted(t *testing.T) {
	s := certs.NewStore()
	s.Update(changes("a.example", "a/tls"))
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, fixture.Expired(t, "b.example").Secret(), true)
	all := s.Problems()
	if len(all) != 1 || len(all[0].Problems) != 2 || !all[0].Accepted() {
		t.Errorf("verdicts: %+v", all)
	}
	if again := s.Problems(); len(report.Changed(&report.Report{Verdicts: all}, &report.Report{Verdicts: again})) > 0 {
		t.Error("the same is said in other words")
	}
}

// BenchmarkProblems measures Problems with 10,000 valid Secrets. It is called each time that any object changes.
func BenchmarkProblems(b *testing.B) {
	s, all := certs.NewStore(), map[string]*ir.Certificate{}
	for i := range 10_000 {
		all[fmt.Sprintf("host-%d.example", i)] = &ir.Certificate{Secret: named(fmt.Sprint("a/tls-", i)),
			Origin: ir.ParseRef("Ingress/a/web")}
	}
	s.Update(all)
	data := fixture.Certificate(b, "*.example").Secret()
	for i := range 10_000 {
		s.SetSecret(ir.Name{Namespace: "a", Name: fmt.Sprint("tls-", i)}, data, true)
	}
	b.ReportAllocs()
	for b.Loop() {
		if p := s.Problems(); len(p) != 0 {
			b.Fatalf("problems of good Secrets: %+v", p[0])
		}
	}
}
