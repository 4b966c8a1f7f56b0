package certs_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"sync"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/certs"
)

// changes returns entries for Store.Update from pairs of host and Secret. All come from the Ingress a/web; an empty
// Secret removes a host.
func changes(pairs ...string) map[string]*ir.Certificate {
	all := map[string]*ir.Certificate{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = nil
		if pairs[i+1] != "" {
			all[pairs[i]] = &ir.Certificate{Secret: named(pairs[i+1]), Origin: ir.ParseRef("Ingress/a/web")}
		}
	}
	return all
}

// named parses "namespace/name".
func named(s string) ir.Name {
	name, err := ir.ParseName(s)
	if err != nil {
		panic(err)
	}
	return name
}

const fake = "Kubernetes Ingress Controller Fake Certificate"

// shown returns the leaf certificate that a client gets.
func shown(t testing.TB, s *certs.Store, name string) []byte {
	t.Helper()
	c, err := s.GetCertificate(&tls.ClientHelloInfo{ServerName: name})
	if err != nil {
		t.Fatalf("%q: %v", name, err)
	}
	return c.Leaf.Raw
}

func expect(t testing.TB, s *certs.Store, name string, want *fixture.Identity) {
	t.Helper()
	if !bytes.Equal(shown(t, s, name), want.Leaf.Raw) {
		t.Errorf("%q gets another certificate than that for %q", name, want.Leaf.DNSNames)
	}
}

func expectFake(t testing.TB, s *certs.Store, name string) {
	t.Helper()
	c, err := s.GetCertificate(&tls.ClientHelloInfo{ServerName: name})
	if err != nil || c.Leaf.Subject.CommonName != fake {
		t.Errorf("%q gets %v, error %v, want the self-signed certificate", name, c.Leaf.Subject, err)
	}
}

func TestCertificateOfAName(t *testing.T) {
	s := certs.NewStore()
	web, wild, other := fixture.Certificate(t, "web.example"), fixture.Certificate(t, "*.example"),
		fixture.Certificate(t, "default.example")
	plain := fixture.Authority(t, nil, "plain.test")
	s.Update(changes("web.example", "a/web", "*.example", "a/wild", "plain.test", "a/plain", "stray.test", "a/web",
		"", "a/other"))
	expectFake(t, s, "web.example")
	s.SetSecret(ir.Name{Namespace: "a", Name: "web"}, web.Secret(), true)
	s.SetSecret(ir.Name{Namespace: "a", Name: "wild"}, wild.Secret(), true)
	s.SetSecret(ir.Name{Namespace: "a", Name: "plain"}, plain.Secret(), true)
	expectFake(t, s, "unknown.test")
	s.SetSecret(ir.Name{Namespace: "a", Name: "other"}, other.Secret(), true)
	for name, want := range map[string]*fixture.Identity{
		"web.example": web, "WEB.example": web, "web.example.": web, "a.example": wild, "plain.test": plain,
		"a.b.example": other, "example": other, ".example": other, "": other, "stray.test": other, "192.0.2.1": other,
	} {
		expect(t, s, name, want)
	}
}

func TestWildcardReplacesTheCertificateOfAnotherName(t *testing.T) {
	s := certs.NewStore()
	s.Update(changes("web.example", "a/stray", "*.example", "a/wild"))
	wild := fixture.Certificate(t, "*.example")
	s.SetSecret(ir.Name{Namespace: "a", Name: "stray"}, fixture.Certificate(t, "stray.example").Secret(), true)
	s.SetSecret(ir.Name{Namespace: "a", Name: "wild"}, wild.Secret(), true)
	expect(t, s, "web.example", wild)
}

func TestSelfSignedCertificateIsMadeOnce(t *testing.T) {
	s := certs.NewStore()
	if !bytes.Equal(shown(t, s, "a"), shown(t, s, "b")) {
		t.Error("two clients get two certificates")
	}
}

func TestSecretsOfOneNameInTwoNamespaces(t *testing.T) {
	s := certs.NewStore()
	one, two := fixture.Certificate(t, "one.example"), fixture.Certificate(t, "two.example")
	s.Update(changes("one.example", "a/tls", "two.example", "b/tls"))
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, one.Secret(), true)
	s.SetSecret(ir.Name{Namespace: "b", Name: "tls"}, two.Secret(), true)
	expect(t, s, "one.example", one)
	expect(t, s, "two.example", two)
	s.SetSecret(ir.Name{Namespace: "b", Name: "tls"}, garbage(), true)
	expect(t, s, "one.example", one)
}

// garbage returns the contents of an invalid Secret.
func garbage() map[string][]byte {
	return map[string][]byte{"tls.crt": []byte("garbage"), "tls.key": []byte("garbage")}
}

func TestRotation(t *testing.T) {
	s := certs.NewStore()
	before, after := fixture.Certificate(t, "web.example", "www.example"),
		fixture.Certificate(t, "web.example", "www.example")
	s.Update(changes("web.example", "a/tls", "www.example", "a/tls"))
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, before.Secret(), true)
	expect(t, s, "web.example", before)
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, after.Secret(), true)
	expect(t, s, "web.example", after)
	expect(t, s, "www.example", after)
	s.Update(changes("www.example", ""))
	expect(t, s, "web.example", after)
	expectFake(t, s, "www.example")
}

// TestContentsMayChangeAfterSetSecret checks that the caller may change the contents after SetSecret has
// returned.
func TestContentsMayChangeAfterSetSecret(t *testing.T) {
	s := certs.NewStore()
	before, after := fixture.Certificate(t, "web.example"), fixture.Certificate(t, "web.example")
	s.Update(changes("web.example", "a/tls"))
	data := before.Secret()
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, data, true)
	data["tls.key"][60] ^= 1
	data["tls.crt"] = after.PEM()
	copy(data["tls.key"], after.KeyPEM())
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, data, true)
	expect(t, s, "web.example", after)
}

func TestLastGoodCertificateIsShownWhileItIsValid(t *testing.T) {
	for name, spoil := range map[string]func(*certs.Store){
		"garbage": func(s *certs.Store) { s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, garbage(), true) },
		"empty":   func(s *certs.Store) { s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, nil, true) },
		"gone":    func(s *certs.Store) { s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, nil, false) },
	} {
		t.Run(name, func(t *testing.T) {
			s := certs.NewStore()
			s.Update(changes("web.example", "a/tls"))
			valid, past := fixture.Certificate(t, "web.example"), fixture.Expired(t, "web.example")
			s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, valid.Secret(), true)
			spoil(s)
			expect(t, s, "web.example", valid)
			spoil(s)
			expect(t, s, "web.example", valid)
			s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, past.Secret(), true)
			expect(t, s, "web.example", past)
			spoil(s)
			expectFake(t, s, "web.example")
			s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, valid.Secret(), true)
			expect(t, s, "web.example", valid)
		})
	}
}

func TestMissingSecretAppears(t *testing.T) {
	s := certs.NewStore()
	web := fixture.Certificate(t, "web.example")
	s.Update(changes("web.example", "a/tls"))
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, nil, false)
	expectFake(t, s, "web.example")
	if p := s.Problems(); len(p) != 0 {
		t.Errorf("problems of a missing Secret: %+v", p[0])
	}
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, web.Secret(), true)
	expect(t, s, "web.example", web)
}

func TestUnreferencedSecretIsForgotten(t *testing.T) {
	s := certs.NewStore()
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, garbage(), true)
	s.Update(changes("web.example", "a/tls"))
	expectFake(t, s, "web.example")
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, garbage(), true)
	s.Update(changes("web.example", ""))
	s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, garbage(), true)
	if p := s.Problems(); len(p) != 0 {
		t.Errorf("problems of a Secret that no host names: %+v", p[0])
	}
}

func TestHostMovesToAMissingSecret(t *testing.T) {
	s := certs.NewStore()
	one, two := fixture.Certificate(t, "web.example"), fixture.Certificate(t, "web.example")
	s.Update(changes("web.example", "a/one"))
	s.SetSecret(ir.Name{Namespace: "a", Name: "one"}, one.Secret(), true)
	s.Update(changes("web.example", "a/two"))
	expect(t, s, "web.example", one)
	s.Update(changes("web.example", "a/three"))
	expect(t, s, "web.example", one)
	s.Update(changes("web.example", "a/three"))
	expect(t, s, "web.example", one)
	s.SetSecret(ir.Name{Namespace: "a", Name: "three"}, two.Secret(), true)
	expect(t, s, "web.example", two)
	s.Update(changes("web.example", "a/missing"))
	expect(t, s, "web.example", two)
	s.SetSecret(ir.Name{Namespace: "a", Name: "missing"}, nil, false)
	expectFake(t, s, "web.example")
}

// TestHostMovesUnderLoad runs handshakes while a host moves between Secrets. It is meant for the race detector.
func TestHostMovesUnderLoad(t *testing.T) {
	s := certs.NewStore()
	pairs := []*fixture.Identity{fixture.Certificate(t, "web.example"), fixture.Certificate(t, "web.example")}
	s.Update(changes("web.example", "a/0"))
	s.SetSecret(ir.Name{Namespace: "a", Name: "0"}, pairs[0].Secret(), true)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c, err := s.GetCertificate(&tls.ClientHelloInfo{ServerName: "web.example"})
				if err != nil || c.Leaf.Subject.CommonName == fake {
					t.Errorf("a handshake got no certificate of a Secret, error %v", err)
					return
				}
			}
		})
	}
	for i := range 400 {
		name := fmt.Sprint((i + 1) % 2)
		s.Update(changes("web.example", "a/"+name))
		s.SetSecret(ir.Name{Namespace: "a", Name: name}, pairs[(i+1)%2].Secret(), true)
		s.SetSecret(ir.Name{Namespace: "a", Name: name}, garbage(), true)
	}
	close(stop)
	readers.Wait()
}

func BenchmarkGetCertificate(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("hosts=%d", n), func(b *testing.B) {
			s, all := certs.NewStore(), map[string]*ir.Certificate{}
			for i := range n {
				all[fmt.Sprintf("host-%d.example", i)] = &ir.Certificate{Secret: named("a/tls"),
					Origin: ir.ParseRef("Ingress/a/web")}
			}
			s.Update(all)
			s.SetSecret(ir.Name{Namespace: "a", Name: "tls"}, fixture.Certificate(b, "*.example").Secret(), true)
			hello := &tls.ClientHelloInfo{ServerName: fmt.Sprintf("host-%d.example", n-1)}
			if c, err := s.GetCertificate(hello); err != nil || c.Leaf.Subject.CommonName == fake {
				b.Fatalf("not the certificate of the Secret, error %v", err)
			}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = s.GetCertificate(hello)
			}
		})
	}
}
