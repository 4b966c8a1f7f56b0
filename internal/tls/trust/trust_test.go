package trust_test

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/trust"
)

var trustSecret = ir.Name{Namespace: "shop", Name: "clients"}

// host returns a virtual host that verifies its clients with the Secret.
func host(name string) *document.Host {
	return &document.Host{ClientAuth: &ir.ClientAuth{Secret: trustSecret, Origin: ir.ParseRef("Ingress/shop/" + name)}}
}

func update(s *trust.Store, hosts map[string]*document.Host) []ir.Name {
	return s.Update(&document.Delta{Hosts: hosts})
}

// trusting returns a store in which one host verifies its clients with the Secret.
func trusting(t testing.TB, data map[string][]byte) (*trust.Store, *trust.Authority) {
	t.Helper()
	s := trust.NewStore()
	if added := update(s, map[string]*document.Host{"a": host("a")}); len(added) != 1 || added[0] != trustSecret {
		t.Fatalf("added are %v", added)
	}
	s.SetSecret(ir.Name{Namespace: "shop", Name: "clients"}, data, data != nil)
	return s, s.Authority(trustSecret)
}

// client creates a certificate for a client.
func client(t testing.TB, parent *fixture.Identity, name string) *fixture.Identity {
	t.Helper()
	return fixture.Identify(t, parent, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func chainOf(all ...*fixture.Identity) []*x509.Certificate {
	var chain []*x509.Certificate
	for _, i := range all {
		chain = append(chain, i.Leaf)
	}
	return chain
}

func bundle(all ...*fixture.Identity) []byte {
	var b bytes.Buffer
	for _, i := range all {
		b.Write(i.PEM())
	}
	return b.Bytes()
}

func verify(c *trust.Contents, depth int, chain ...*fixture.Identity) string {
	if _, err := c.VerifyClient(chainOf(chain...), depth, time.Now()); err != nil {
		return err.Error()
	}
	return "good"
}

func TestDepth(t *testing.T) {
	root := fixture.Authority(t, nil, "root")
	one := fixture.Authority(t, root, "one")
	two := fixture.Authority(t, one, "two")
	direct, behindOne, behindTwo := client(t, root, "c"), client(t, one, "c"), client(t, two, "c")
	for _, test := range []struct {
		name        string
		authorities []byte
		depth       int
		chain       []*fixture.Identity
		want        string
	}{
		{"issued by the root", bundle(root), 0, []*fixture.Identity{direct}, "good"},
		{"one between, none allowed", bundle(root), 0, []*fixture.Identity{behindOne, one},
			"certificate chain too long"},
		{"one between", bundle(root), 1, []*fixture.Identity{behindOne, one}, "good"},
		{"two between, one allowed", bundle(root), 1, []*fixture.Identity{behindTwo, two, one},
			"certificate chain too long"},
		{"two between", bundle(root), 2, []*fixture.Identity{behindTwo, two, one}, "good"},
		{"those in the bundle count, too", bundle(root, one, two), 1, []*fixture.Identity{behindTwo},
			"certificate chain too long"},
		{"the client need not send those in the bundle", bundle(root, one), 1, []*fixture.Identity{behindOne}, "good"},
		{"an intermediate alone is the top", bundle(two), 0, []*fixture.Identity{behindTwo}, "good"},
		{"the issuer is not sent", bundle(root), 9, []*fixture.Identity{behindOne},
			"unable to verify the first certificate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, a := trusting(t, map[string][]byte{"ca.crt": test.authorities})
			if got := verify(a.Contents(), test.depth, test.chain...); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestVerifyClient(t *testing.T) {
	root, other := fixture.Authority(t, nil, "root"), fixture.Authority(t, nil, "root")
	_, a := trusting(t, map[string][]byte{"ca.crt": root.PEM()})
	server := fixture.Identify(t, root, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	old := fixture.Identify(t, root, &x509.Certificate{NotBefore: time.Now().Add(-2 * time.Hour),
		NotAfter: time.Now().Add(-time.Hour)})
	early := fixture.Identify(t, root, &x509.Certificate{NotBefore: time.Now().Add(time.Hour),
		NotAfter: time.Now().Add(2 * time.Hour)})
	stranger := fixture.Authority(t, nil, "stranger")
	between, twin, forged := fixture.Authority(t, stranger, "between"), fixture.Authority(t, nil, "between"),
		fixture.Authority(t, other, "forged")
	ordinary := client(t, root, "d")
	for _, test := range []struct {
		name  string
		chain []*fixture.Identity
		want  string
	}{
		{"good", []*fixture.Identity{client(t, root, "c")}, "good"},
		{"without a purpose", []*fixture.Identity{fixture.Identify(t, root, &x509.Certificate{})}, "good"},
		{"of another authority of that name", []*fixture.Identity{client(t, other, "c")},
			"certificate signature failure"},
		{"that brings its own authority of that name", []*fixture.Identity{client(t, other, "c"), other},
			"certificate signature failure"},
		{"of an unknown authority", []*fixture.Identity{client(t, stranger, "c")},
			"unable to verify the first certificate"},
		{"that brings its unknown authority", []*fixture.Identity{client(t, stranger, "c"), stranger},
			"unable to verify the first certificate"},
		{"that brings one in between", []*fixture.Identity{client(t, between, "c"), between},
			"unable to verify the first certificate"},
		{"behind a forged one", []*fixture.Identity{client(t, forged, "c"), forged}, "certificate signature failure"},
		{"that brings another issuer of that name", []*fixture.Identity{client(t, between, "c"), twin},
			"certificate signature failure"},
		{"of no authority, but of a client", []*fixture.Identity{client(t, client(t, root, "d"), "c")},
			"unable to verify the first certificate"},
		{"of a client that it brings", []*fixture.Identity{client(t, ordinary, "c"), ordinary},
			"certificate signature failure"},
		{"of itself", []*fixture.Identity{client(t, nil, "c")}, "unable to verify the first certificate"},
		{"for servers", []*fixture.Identity{server}, "unsuitable certificate purpose"},
		{"expired", []*fixture.Identity{old}, "certificate has expired"},
		{"not yet valid", []*fixture.Identity{early}, "certificate is not yet valid"},
	} {
		if got := verify(a.Contents(), 1, test.chain...); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestRevocation(t *testing.T) {
	tomorrow, yesterday := time.Now().Add(24*time.Hour), time.Now().Add(-24*time.Hour)
	root := fixture.Authority(t, nil, "root")
	middle := fixture.Authority(t, root, "middle")
	good, bad, behind := client(t, root, "good"), client(t, root, "bad"), client(t, middle, "behind")
	list := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, test := range []struct {
		name  string
		crl   []byte
		chain []*fixture.Identity
		want  string
	}{
		{"not in the list", root.Revoking(t, tomorrow, bad), []*fixture.Identity{good}, "good"},
		{"in the list", root.Revoking(t, tomorrow, bad), []*fixture.Identity{bad}, "certificate revoked"},
		{"in an old list", root.Revoking(t, yesterday, bad), []*fixture.Identity{bad}, "certificate revoked"},
		{"old list", root.Revoking(t, yesterday), []*fixture.Identity{good}, "CRL has expired"},
		{"old list and new one", list(root.Revoking(t, yesterday), root.Revoking(t, tomorrow)),
			[]*fixture.Identity{good}, "good"},
		{"old list and new one, revoked by the new one",
			list(root.Revoking(t, yesterday), root.Revoking(t, tomorrow, bad)), []*fixture.Identity{bad},
			"certificate revoked"},
		{"no list of the issuer", root.Revoking(t, tomorrow), []*fixture.Identity{behind, middle},
			"unable to get certificate CRL"},
		{"lists of all issuers", list(root.Revoking(t, tomorrow), middle.Revoking(t, tomorrow)),
			[]*fixture.Identity{behind, middle}, "good"},
		{"issuer revoked", list(root.Revoking(t, tomorrow, middle), middle.Revoking(t, tomorrow)),
			[]*fixture.Identity{behind, middle},
			"certificate revoked"},
		{"list of another authority of that name", fixture.Authority(t, nil, "root").Revoking(t, tomorrow),
			[]*fixture.Identity{good},
			"unable to get certificate CRL"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, a := trusting(t, map[string][]byte{"ca.crt": root.PEM(), "ca.crl": test.crl})
			if got := verify(a.Contents(), 1, test.chain...); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestResultExpires checks that a result is valid until a certificate or a revocation list expires.
func TestResultExpires(t *testing.T) {
	root, soon := fixture.Authority(t, nil, "root"), time.Now().Add(time.Hour).Truncate(time.Second)
	c := client(t, root, "c")
	_, plain := trusting(t, map[string][]byte{"ca.crt": root.PEM()})
	_, listed := trusting(t, map[string][]byte{"ca.crt": root.PEM(), "ca.crl": root.Revoking(t, soon)})
	until, _ := plain.Contents().VerifyClient(chainOf(c), 1, time.Now())
	if !until.Equal(root.Leaf.NotAfter) {
		t.Errorf("until %s, and the authority expires %s", until, root.Leaf.NotAfter)
	}
	if until, _ = listed.Contents().VerifyClient(chainOf(c), 1, time.Now()); !until.Equal(soon) {
		t.Errorf("until %s, and the list expires %s", until, soon)
	}
}

// TestUnreadableAuthorityKeepsOut checks that no client is trusted if the Secret is invalid in any way.
func TestUnreadableAuthorityKeepsOut(t *testing.T) {
	root := fixture.Authority(t, nil, "root")
	c := client(t, root, "c")
	ca := root.PEM()
	for _, test := range []struct {
		name, reason, message string
		data                  map[string][]byte
	}{
		{"missing", "SecretNotFound",
			"Secret shop/clients does not exist: every request gets 403 for a until it does", nil},
		{"without ca.crt", "InvalidCA", "there is no ca.crt", map[string][]byte{"tls.crt": ca}},
		{"empty", "InvalidCA", "ca.crt is empty", map[string][]byte{"ca.crt": []byte("\n")}},
		{"garbage", "InvalidCA", "ca.crt has no certificate in PEM", map[string][]byte{"ca.crt": []byte("garbage")}},
		{"garbage in PEM", "InvalidCA", "a certificate in ca.crt cannot be read",
			map[string][]byte{"ca.crt": append(bytes.Clone(ca), fixture.PEM("CERTIFICATE", []byte("x"))...)}},
		{"empty list", "InvalidCA", "ca.crl has no X509 CRL in PEM", map[string][]byte{"ca.crt": ca, "ca.crl": nil}},
		{"garbage list", "InvalidCA", "a list in ca.crl cannot be read",
			map[string][]byte{"ca.crt": ca, "ca.crl": fixture.PEM("X509 CRL", []byte("x"))}},
		{"huge", "InvalidCA", "at most", map[string][]byte{"ca.crt": bytes.Repeat(ca, 1<<20/len(ca)+1)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, a := trusting(t, test.data)
			if pool, err := a.Pool(); pool != nil || err == nil {
				t.Errorf("the pool is %v, the error %v", pool, err)
			}
			if got := verify(a.Contents(), 9, c); got == "good" {
				t.Error("a client is let in")
			}
			all := s.Problems()
			if len(all) != 1 || len(all[0].Problems) != 1 || all[0].Object.Name != "a" {
				t.Fatalf("verdicts are %+v", all)
			}
			p := all[0].Problems[0]
			const field = "metadata.annotations[nginx.ingress.kubernetes.io/auth-tls-secret]"
			if string(p.Reason) != test.reason || !strings.Contains(p.Message, test.message) || p.Field != field ||
				p.Severity != report.Error {
				t.Errorf("the problem is %+v", p)
			}
		})
	}
}

func TestAuthorityChangesWithItsSecret(t *testing.T) {
	first, second := fixture.Authority(t, nil, "first"), fixture.Authority(t, nil, "second")
	s, a := trusting(t, map[string][]byte{"ca.crt": first.PEM()})
	before := a.Contents()
	s.SetSecret(ir.Name{Namespace: "shop", Name: "clients"},
		map[string][]byte{"ca.crt": first.PEM(), "other": []byte("x")}, true)
	if a.Contents() != before {
		t.Error("the same certificates were read again")
	}
	s.SetSecret(ir.Name{Namespace: "shop", Name: "clients"}, map[string][]byte{"ca.crt": second.PEM()}, true)
	if got := verify(a.Contents(), 1, client(t, second, "c")); got != "good" ||
		verify(a.Contents(), 1, client(t, first, "c")) == "good" {
		t.Error("the Secret was replaced, and the authority was not")
	}
	s.SetSecret(ir.Name{Namespace: "shop", Name: "clients"}, nil, false)
	if got := verify(a.Contents(), 1, client(t, second, "c")); got == "good" {
		t.Error("the Secret has gone, and the authority has not")
	}
	s.SetSecret(ir.Name{Namespace: "shop", Name: "clients"}, map[string][]byte{"ca.crt": second.PEM()}, true)
	if got := verify(a.Contents(), 1, client(t, second, "c")); got != "good" {
		t.Error("the Secret is back, and the authority is not:", got)
	}
}

func TestUpdate(t *testing.T) {
	root := fixture.Authority(t, nil, "root")
	s, a := trusting(t, map[string][]byte{"ca.crt": root.PEM()})
	if added := update(s, map[string]*document.Host{"b": host("b"), "c": nil}); len(added) != 0 {
		t.Errorf("%v come again", added)
	}
	update(s, map[string]*document.Host{"a": nil})
	if s.Authority(trustSecret) != a {
		t.Error("one host has gone, and the other one gets another authority")
	}
	// If one host replaces another in the same update, the authority is kept.
	update(s, map[string]*document.Host{"b": nil, "d": host("d")})
	if s.Authority(trustSecret) != a {
		t.Error("the authority is another one, although there was always somebody who referred to it")
	}
	update(s, map[string]*document.Host{"d": nil})
	if _, err := s.Authority(trustSecret).Pool(); err == nil {
		t.Error("a Secret that nobody refers to is known")
	}
	if got := verify(a.Contents(), 1, client(t, root, "c")); got != "good" {
		t.Error("requests under way lose their authority:", got)
	}
}

func TestPair(t *testing.T) {
	pair, other := fixture.Certificate(t, "client"), fixture.Certificate(t, "other")
	port := &document.Port{Origin: ir.Ref{Kind: "Service", Namespace: "shop", Name: "a"},
		TLS: &ir.StreamTLS{Secret: trustSecret}}
	for _, test := range []struct {
		name, message string
		data          map[string][]byte
	}{
		{"good", "", pair.Secret()},
		{"none", "there is neither tls.crt nor tls.key", map[string][]byte{"ca.crt": pair.PEM()}},
		{"without a key", "tls.key is empty", map[string][]byte{"tls.crt": pair.PEM()}},
		{"of two", "belongs to none", map[string][]byte{"tls.crt": pair.PEM(), "tls.key": other.KeyPEM()}},
		{"expired", "clients reject it", fixture.Expired(t, "client").Secret()},
	} {
		s := trust.NewStore()
		s.Update(&document.Delta{Ports: map[string]*document.Port{"tcp/1": port}})
		s.SetSecret(ir.Name{Namespace: "shop", Name: "clients"}, test.data, true)
		got, err := s.Authority(trustSecret).Pair()
		if (got != nil) != (err == nil) {
			t.Errorf("%s: %v and %v", test.name, got, err)
		}
		var message string
		for _, v := range s.Problems() {
			message += v.Problems[0].Message
		}
		if message == "" != (test.message == "") || !strings.Contains(message, test.message) {
			t.Errorf("%s: the problem is %q, want %q", test.name, message, test.message)
		}
	}
}

func expectProblems(t *testing.T, s *trust.Store, want ...string) {
	t.Helper()
	var lines []string
	for _, v := range s.Problems() {
		for _, p := range v.Problems {
			lines = append(lines, fmt.Sprintf("%s %s %s %s: %s", p.Severity, p.Reason, v.Object, p.Field, p.Message))
		}
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
}

func TestProblems(t *testing.T) {
	yesterday := time.Now().Add(-24 * time.Hour)
	gone := fixture.Identify(t, nil, &x509.Certificate{
		Subject: pkix.Name{CommonName: "gone"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: yesterday.Add(-time.Hour), NotAfter: yesterday,
		KeyUsage: x509.KeyUsageCRLSign | x509.KeyUsageCertSign,
	})
	s, _ := trusting(t, map[string][]byte{"ca.crt": gone.PEM(), "ca.crl": gone.Revoking(t, yesterday)})
	update(s, map[string]*document.Host{"b": host("b")})
	var got []string
	for _, v := range s.Problems() {
		for _, p := range v.Problems {
			got = append(got, v.Object.Name+" "+string(p.Severity)+" "+string(p.Reason))
		}
	}
	want := []string{
		"a warning CertificateExpired", "a error RevocationListExpired", "b warning CertificateExpired",
		"b error RevocationListExpired",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzContents checks that a Secret is either read completely, or makes every verification fail.
func FuzzContents(f *testing.F) {
	root := fixture.Authority(f, nil, "root")
	c := client(f, root, "c")
	f.Add(root.PEM(), root.Revoking(f, time.Now().Add(time.Hour)))
	f.Add([]byte("garbage"), []byte("garbage"))
	f.Add(root.PEM(), []byte{})
	f.Fuzz(func(t *testing.T, ca, crl []byte) {
		contents := trust.ReadContents(map[string][]byte{"ca.crt": ca, "ca.crl": crl})
		pool, err := contents.Pool()
		if (pool == nil) != (err != nil) {
			t.Fatalf("the pool is %v, and the error %v", pool, err)
		}
		if err != nil && verify(contents, 9, c) == "good" {
			t.Error("nothing can be read, and a client is let in")
		}
	})
}
