package mtls_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/mtls"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/trust"
)

// trusting holds a store with the certificate authority "shop/ca", and a connection of a client with a certificate from
// this authority.
type trusting struct {
	store *trust.Store
	state *tls.ConnectionState
	pem   []byte
}

func authority(t testing.TB) *trusting {
	t.Helper()
	ca := fixture.Authority(t, nil, "ca")
	client := fixture.Identify(t, ca, &x509.Certificate{
		Subject: pkix.Name{CommonName: "alice"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
	})
	s := trust.NewStore()
	s.Update(
		&document.Delta{Hosts: map[string]*document.Host{"host": {
			ClientAuth: &ir.ClientAuth{Secret: ir.Name{Namespace: "shop", Name: "ca"}},
		}}})
	tr := &trusting{store: s, state: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{client.Leaf}}}
	tr.pem = ca.PEM()
	tr.setSecret(map[string][]byte{"ca.crt": tr.pem})
	return tr
}

func (tr *trusting) setSecret(data map[string][]byte) {
	tr.store.SetSecret(ir.Name{Namespace: "shop", Name: "ca"}, data, true)
}

func (tr *trusting) policy(d ir.ClientAuth) *mtls.Policy {
	d.Secret, d.Depth = ir.Name{Namespace: "shop", Name: "ca"}, 1
	return mtls.New(&d, tr.store.Authority(ir.Name{Namespace: "shop", Name: "ca"}))
}

// TestTruth checks that an invalid keyword, expression or Secret lets no client in.
func TestTruth(t *testing.T) {
	tr := authority(t)
	for _, test := range []struct {
		name         string
		d            ir.ClientAuth
		asks, closed bool
		without      int
		with         int
	}{
		{"on", ir.ClientAuth{Verify: "on"}, true, false, 400, 0},
		{"off", ir.ClientAuth{Verify: "off"}, false, false, 0, 0},
		{"optional", ir.ClientAuth{Verify: "optional"}, true, false, 0, 0},
		{"optional_no_ca", ir.ClientAuth{Verify: "optional_no_ca"}, true, false, 0, 0},
		{"nothing", ir.ClientAuth{}, false, true, 403, 403},
		{"a wrong word", ir.ClientAuth{Verify: "ON"}, false, true, 403, 403},
		{"closed", ir.ClientAuth{Verify: "off", Closed: true}, false, true, 403, 403},
		{"a wrong expression", ir.ClientAuth{Verify: "off", Subject: "CN=("}, false, true, 403, 403},
		{"another name", ir.ClientAuth{Verify: "on", Subject: "CN=bob"}, true, false, 400, 403},
		{"the name", ir.ClientAuth{Verify: "on", Subject: "CN=al"}, true, false, 400, 0},
		{"a name that nobody asks for", ir.ClientAuth{Verify: "off", Subject: "CN=alice"}, false, false, 403, 403},
		{"a page", ir.ClientAuth{Verify: "on", ErrorPage: "https://example.com/"}, true, false, 302, 0},
	} {
		p := tr.policy(test.d)
		if p.RequestsCert() != test.asks || p.RejectsAll() != test.closed {
			t.Errorf("%s: asks %t, closed %t", test.name, p.RequestsCert(), p.RejectsAll())
		}
		for state, want := range map[*tls.ConnectionState]int{nil: test.without, {}: test.without,
			tr.state: test.with} {
			got := 0
			if _, refusal := p.Check(state); refusal != nil {
				got = refusal.Status
			}
			if got != want {
				t.Errorf("%s, with a certificate %t: %d, want %d", test.name, state == tr.state, got, want)
			}
		}
	}
	other := ir.Name{Namespace: "shop", Name: "other"}
	unknown := mtls.New(&ir.ClientAuth{Secret: other, Verify: "off"}, tr.store.Authority(other))
	if !unknown.RejectsAll() {
		t.Error("a Secret that nobody knows lets in")
	}
}

// TestRemembers checks that a certificate is verified again when the Secret has changed, and when the certificate has
// expired.
func TestRemembers(t *testing.T) {
	tr := authority(t)
	p := tr.policy(ir.ClientAuth{Verify: "on"})
	first, _ := p.Check(tr.state)
	if again, _ := p.Check(tr.state); again != first {
		t.Error("the same certificate is verified twice")
	}
	if allocs := testing.AllocsPerRun(100, func() { p.Check(tr.state) }); allocs > 0 {
		t.Errorf("a client that is known costs %v allocations", allocs)
	}
	other := authority(t)
	tr.setSecret(map[string][]byte{"ca.crt": other.pem})
	if _, refusal := p.Check(tr.state); refusal == nil {
		t.Error("the authority is another one, and its client is still let in")
	}
	tr.setSecret(map[string][]byte{"ca.crt": tr.pem})
	if _, refusal := p.Check(tr.state); refusal != nil {
		t.Error("the authority is back, and its client is not let in")
	}
	tr.setSecret(nil)
	if _, refusal := p.Check(tr.state); refusal == nil || refusal.Status != http.StatusForbidden {
		t.Error("the Secret is empty, and the client is let in")
	}
}

// TestForged checks that a client with a forged certificate is not treated as a client with an unknown issuer, if the
// name of its issuer is in the Secret.
func TestForged(t *testing.T) {
	tr, other := authority(t), authority(t)
	if client, refusal := tr.policy(ir.ClientAuth{Verify: "optional_no_ca"}).Check(other.state); refusal == nil ||
		refusal.Status != 400 {
		t.Errorf("a client of a false %s is let in: %s", client.Issuer, client.Verify)
	}
}

func TestExpiresWhileItIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := authority(t)
		p := tr.policy(ir.ClientAuth{Verify: "on"})
		if _, refusal := p.Check(tr.state); refusal != nil {
			t.Fatal("it is not let in")
		}
		<-time.After(time.Hour + time.Second)
		if _, refusal := p.Check(tr.state); refusal == nil {
			t.Error("a certificate that has expired is let in, because it was before")
		}
	})
}

// TestCertificateHeaders checks that the fields about the client certificate cannot be forged by the client, in any
// spelling.
func TestCertificateHeaders(t *testing.T) {
	tr := authority(t)
	for _, test := range []struct {
		name  string
		state *tls.ConnectionState
		want  http.Header
	}{
		{"nobody", nil, http.Header{"Accept": {"*"}, "Ssl-Client-Verify": {"NONE"}, "Ssl-Clien": {"x"}}},
		{"alice", tr.state, http.Header{
			"Accept": {"*"}, "Ssl-Client-Verify": {"SUCCESS"}, "Ssl-Client-Subject-Dn": {"CN=alice"},
			"Ssl-Client-Issuer-Dn": {"CN=ca"},
			"Ssl-Clien":            {"x"},
		}},
	} {
		p := tr.policy(ir.ClientAuth{Verify: "optional"})
		header := http.Header{"Accept": {"*"}, "Ssl-Clien": {"x"}}
		for _, name := range []string{"Ssl-Client-Verify", "ssl-client-subject-dn", "SSL_CLIENT_ISSUER_DN",
			"Ssl.client-cert", "Ssl-Client-S-Dn"} {
			header[name] = []string{"claimed", "twice"}
		}
		client, _ := p.Check(test.state)
		fields := message.FieldsOf(header)
		p.SetFields(client, &fields)
		if diff := cmp.Diff(test.want, fields.Header()); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func TestRefusal(t *testing.T) {
	tr := authority(t)
	_, refusal := tr.policy(ir.ClientAuth{Verify: "on"}).Check(nil)
	if fields := refusal.Fields(); refusal.Status != http.StatusBadRequest || !refusal.CloseConn ||
		fields.Get(message.ContentType) != "text/html" ||
		!strings.Contains(refusal.Body(), "No required SSL certificate was sent") {
		t.Errorf("%+v %v %q", refusal, fields, refusal.Body())
	}
}

func BenchmarkCheckKnown(b *testing.B) {
	tr := authority(b)
	p := tr.policy(ir.ClientAuth{Verify: "on"})
	for b.Loop() {
		p.Check(tr.state)
	}
}
