package translate_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/translate"
)

// listing returns an Ingress like numbered that lists its host in spec.tls. It was created i seconds after 1970.
func listing(i int, host, secret string) *networkingv1.Ingress {
	object := numbered(i, "/")
	object.CreationTimestamp = metav1.Unix(int64(i), 0)
	object.Spec.Rules[0].Host = host
	object.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{host}, SecretName: secret}}
	return object
}

func plain(i int, host string) *networkingv1.Ingress {
	object := listing(i, host, "")
	object.Spec.TLS = nil
	return object
}

func tlsSecret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
}

// sources maps each host to the source of its certificate.
func sources(c *ir.Config) map[string]string {
	all := map[string]string{}
	for _, certificate := range c.Certificates {
		all[certificate.Host] = certificate.Secret.Name
		if certificate.Automated {
			all[certificate.Host] = "issuer"
		}
	}
	return all
}

// steps changes a store, and checks the certificates after each change.
type steps struct {
	*testing.T
	store      *snapshot.Store
	translator *translate.Translator
	config     *ir.Config
}

func newSteps(t *testing.T) *steps {
	return &steps{T: t, store: fill(0), translator: translate.New()}
}

func (s *steps) expect(after string, want map[string]string) {
	s.Helper()
	s.config, _ = s.translator.Translate(s.store.Take(), scarce)
	if diff := cmp.Diff(want, sources(s.config)); diff != "" {
		s.Errorf("%s (-want +got):\n%s", after, diff)
	}
}

// TestLaterSecretReplacesTheIssuer checks that the certificate in a new Secret replaces the certificate from an
// issuer, and that the issuer is used again after the Secret is deleted.
func TestLaterSecretReplacesTheIssuer(t *testing.T) {
	s := newSteps(t)
	s.store.Set(listing(1, "a.example", "later"))
	s.expect("without the Secret", map[string]string{"a.example": "issuer"})
	s.store.Set(tlsSecret("later"))
	s.expect("with the Secret", map[string]string{"a.example": "later"})
	s.store.Delete(tlsSecret("later"))
	s.expect("without it again", map[string]string{"a.example": "issuer"})
}

// TestWildcardCertificateIsUsed checks that a host that no Ingress lists for TLS uses the certificate of its
// wildcard, as long as the wildcard has a certificate.
func TestWildcardCertificateIsUsed(t *testing.T) {
	s := newSteps(t)
	s.store.Set(plain(1, "a.w.example"))
	s.store.Set(listing(2, "b.w.example", ""))
	s.store.Set(plain(3, "w.example"))
	s.expect("without the wildcard", map[string]string{"a.w.example": "issuer", "b.w.example": "issuer"})
	s.store.Set(tlsSecret("wild"))
	s.store.Set(listing(4, "*.w.example", "wild"))
	garbage := map[string]string{"*.w.example": "wild", "a.w.example": "issuer", "b.w.example": "issuer"}
	s.expect("with an empty Secret", garbage)
	filled := tlsSecret("wild")
	filled.Data = fixture.Certificate(t, "*.w.example").Secret()
	s.store.Set(filled)
	s.expect("with the wildcard", map[string]string{"*.w.example": "wild", "b.w.example": "issuer",
		"w.example": "issuer"})
	other := tlsSecret("wild")
	other.Data = fixture.Certificate(t, "*.x.example", "b.w.example").Secret()
	s.store.Set(other)
	s.expect("with a certificate for others", garbage)
	s.store.Set(filled)
	s.expect("with the wildcard again", map[string]string{"*.w.example": "wild", "b.w.example": "issuer",
		"w.example": "issuer"})
	s.store.Delete(numbered(4, "/"))
	s.expect("without it again", map[string]string{"a.w.example": "issuer", "b.w.example": "issuer"})
}

// TestTheNextHostMovesUp checks that a host over the quota gets its certificate when an older host is deleted, and that
// no other certificate changes.
func TestTheNextHostMovesUp(t *testing.T) {
	s := newSteps(t)
	for i, host := range []string{"zero.example", "one.example", "two.example", "three.example"} {
		s.store.Set(listing(i, host, ""))
	}
	s.expect("four hosts", map[string]string{"zero.example": "issuer", "one.example": "issuer"})
	one := s.config.Certificates[0]
	s.store.Delete(numbered(0, "/"))
	s.expect("without the oldest", map[string]string{"one.example": "issuer", "two.example": "issuer"})
	if s.config.Certificates[0] != one {
		t.Error("the certificate of a host that did not change is another one")
	}
	s.store.Set(listing(2, "two.example", "own"))
	s.store.Set(tlsSecret("own"))
	s.expect("with a Secret", map[string]string{"one.example": "issuer", "two.example": "own",
		"three.example": "issuer"})
}

// BenchmarkOneOf10000Issued changes one of 10,000 Ingresses. As many hosts as the quota allows get certificates from an
// issuer.
func BenchmarkOneOf10000Issued(b *testing.B) {
	o := scarce
	o.HostsPerNamespace = 5_000
	store, translator := fill(10_000), translate.New()
	translator.Translate(store.Take(), o)
	i := 0
	for b.Loop() {
		i++
		object := numbered(77, fmt.Sprint("/", i%2))
		object.CreationTimestamp = metav1.Unix(int64(i%2), 0)
		store.Set(object)
		translator.Translate(store.Take(), o)
	}
}
