package certs

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	tlssecret "github.com/k8singress/k8singress/internal/tls/secret"
)

// shows returns the certificate of a.example.
func shows(t *testing.T, s *Store) *tls.Certificate {
	t.Helper()
	pair, err := s.GetCertificate(&tls.ClientHelloInfo{ServerName: "a.example"})
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// TestIssuedCertificate checks that a host with an issuer keeps the certificate of its previous Secret until the issuer
// has issued one, without a problem being reported.
func TestIssuedCertificate(t *testing.T) {
	s := NewStore()
	show := func() *tls.Certificate { return shows(t, s) }
	first, second := makeSelfSigned(), makeSelfSigned()
	first.Leaf.DNSNames, second.Leaf.DNSNames = []string{"a.example"}, []string{"a.example"}
	automated := map[string]*ir.Certificate{"a.example": {Automated: true, Origin: ir.ParseRef("Ingress/shop/web")}}
	s.Update(automated)
	s.SetIssued("a.example", first)
	if show() != first {
		t.Error("the issued certificate is not shown")
	}
	s.Update(map[string]*ir.Certificate{"a.example": {Secret: ir.Name{Namespace: "shop", Name: "tls"}}})
	if show() != first {
		t.Error("it is not shown until the Secret is told")
	}
	s.SetIssued("a.example", second)
	s.Update(automated)
	if show() == second {
		t.Error("what was issued for a host with a Secret is shown")
	}
	s.SetIssued("a.example", second)
	s.SetIssued("other.example", second)
	if show() != second {
		t.Error("the newest is not shown")
	}
	if got := s.Problems(); len(got) != 0 {
		t.Errorf("problems are %v", got)
	}
	s.Update(map[string]*ir.Certificate{"a.example": nil})
	if show() == second || s.secrets.Len() != 0 {
		t.Error("it is shown for a host that has gone")
	}
}

// TestExpiredCertificateOfTheSecretBefore checks that the certificate of the previous Secret is used only until it
// expires, even if the issuer keeps failing.
func TestExpiredCertificateOfTheSecretBefore(t *testing.T) {
	s := NewStore()
	show := func() *tls.Certificate { return shows(t, s) }
	old := makeSelfSigned()
	old.Leaf.DNSNames = []string{"a.example"}
	ofSecret := &ir.Certificate{Secret: ir.Name{Namespace: "shop", Name: "tls"},
		Origin: ir.ParseRef("Ingress/shop/web")}
	s.Update(map[string]*ir.Certificate{"a.example": ofSecret, "b.example": ofSecret})
	s.secrets.Get(sourceOf("", ofSecret)).show(&shown{pair: old, names: tlssecret.NamesOf(old.Leaf)})
	s.takeOver(s.secrets.Get(sourceOf("", ofSecret)))
	s.Update(map[string]*ir.Certificate{"a.example": {Automated: true, Origin: ir.ParseRef("Ingress/shop/web")}})
	if show() != old {
		t.Error("the certificate of the Secret is not shown until there is another one")
	}
	old.Leaf.NotAfter = time.Now().Add(-time.Minute)
	if show() == old {
		t.Error("it is shown though it has expired, and nobody renews it")
	}
	s.Update(map[string]*ir.Certificate{"a.example": ofSecret})
	if show() != old {
		t.Error("what the Secret holds is not shown because it has expired")
	}
}
