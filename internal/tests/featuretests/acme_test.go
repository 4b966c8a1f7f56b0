package featuretests

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// automatic returns an Ingress whose tls entry names no Secret.
func automatic(name, host string) string {
	text := strings.Replace(rule(name, host, "Prefix", "/", "web"), "  rules:",
		fmt.Sprintf("  tls: [{hosts: [%q]}]\n  rules:", host), 1)
	// Without the redirect, tests can see by HTTP how a host responds before it has its certificate.
	return strings.Replace(text, "{name: "+name+"}",
		"{name: "+name+`, annotations: {nginx.ingress.kubernetes.io/ssl-redirect: "false"}}`, 1)
}

func TestCertificateFromACME(t *testing.T) {
	for name, challenge := range map[string]string{
		"HTTP-01":     `"challenges":{"tls-alpn":{"disabled":true}}`,
		"TLS-ALPN-01": `"challenges":{"http":{"disabled":true}}`,
	} {
		t.Run(name, func(t *testing.T) {
			ip, port := backend(t, "one")
			in := newIngress(t)
			ca := newAuthority(in)
			in.write("manifests.yaml", class+service("web", port, ip))
			in.issuing(settings.Config{Issuers: []json.RawMessage{ca.issuer(challenge)}})
			roots := ca.roots()
			begin := time.Now()
			in.write("web.yaml", automatic("web", "shop.example"))
			leaf := in.trusted(roots, "shop.example")
			took := time.Since(begin)
			t.Logf("from the Ingress to a valid handshake: %v", took)
			if took > deadline/2 {
				t.Errorf("the first certificate took %v", took)
			}
			if err := leaf.VerifyHostname("shop.example"); err != nil {
				t.Error(err)
			}
			if got := ca.taken().Orders["shop.example"]; got != 1 {
				t.Errorf("the authority took %d orders", got)
			}
		})
	}
}

// issuingWeb runs the controller with a certificate authority, and with one Service that Ingresses can name.
func issuingWeb(t *testing.T, environment ...string) (*ingress, *authority) {
	t.Helper()
	ip, port := backend(t, "one")
	in := newIngress(t)
	ca := newAuthority(in, environment...)
	in.write("manifests.yaml", class+service("web", port, ip))
	in.issuing(settings.Config{Issuers: []json.RawMessage{ca.issuer("")}})
	return in, ca
}

func TestCertificatesSurviveRejectedNonces(t *testing.T) {
	in, ca := issuingWeb(t, "PEBBLE_WFE_NONCEREJECT=30")
	roots := ca.roots()
	for n := range 5 {
		host := fmt.Sprintf("n%d.example", n)
		in.write(host+".yaml", automatic(fmt.Sprintf("n%d", n), host))
		in.trusted(roots, host)
	}
}

// TestAuthorityIsDown checks that an authority that is down affects only the hosts that wait for its certificates, and
// that their owners see its error message.
func TestAuthorityIsDown(t *testing.T) {
	in, ca := issuingWeb(t)
	roots := ca.roots()
	in.write("first.yaml", automatic("first", "first.example"))
	in.trusted(roots, "first.example")
	ca.fails(fault{Path: "order-plz", Status: 503, Type: "urn:ietf:params:acme:error:serverInternal",
		Detail: "the engine room is on fire"})
	in.write("second.yaml", automatic("second", "second.example"))
	in.eventually("the words of the authority", func() error {
		got := in.message("Ingress/default/second", "ACMEFailed")
		if !strings.Contains(got, "the engine room is on fire") ||
			!strings.Contains(got, "the next attempt is after 20") {
			return fmt.Errorf("the verdict is %q", got)
		}
		return nil
	})
	in.expect("second.example", "/x", 200, "one /x")
	if _, err := in.verified(roots, "first.example"); err != nil {
		t.Errorf("the host with a certificate: %v", err)
	}
	if got := in.message("Ingress/default/first", "ACMEFailed"); got != "" {
		t.Errorf("the Ingress with a certificate is told %q", got)
	}
	if got := in.certificate("second.example"); got[0] != "Kubernetes Ingress Controller Fake Certificate" {
		t.Errorf("the host that waits is shown %v", got)
	}
}

// limited waits until the verdict on an Ingress contains the time of the next request to the authority.
func (in *ingress) limited(name string, until time.Time) {
	in.Helper()
	in.eventually("the verdict", func() error {
		got := in.message("Ingress/default/"+name, "ACMEFailed")
		_, text, found := strings.Cut(got, "the next attempt is after ")
		at, err := time.Parse("2006-01-02 at 15:04:05 UTC", text)
		if !found || err != nil || at.Sub(until).Abs() > 10*time.Second {
			return fmt.Errorf("it is %q, want %v", got, until.UTC())
		}
		return nil
	})
}

const rateLimited = "urn:ietf:params:acme:error:rateLimited"

// TestRateLimitOfOneHost checks that the rate limit of one host does not affect other hosts, and that it survives a
// restart of the process and changes of the Ingress.
func TestRateLimitOfOneHost(t *testing.T) {
	in, ca := issuingWeb(t)
	roots := ca.roots()
	ca.fails(fault{
		Path: "order-plz", Name: "busy.example", Status: 429, RetryAfter: "7200", Type: rateLimited,
		Detail: `too many certificates (5) already issued for "busy.example" in the last 168h0m0s`,
	})
	in.write("busy.yaml", automatic("busy", "busy.example"))
	until := time.Now().Add(2 * time.Hour)
	in.limited("busy", until)
	in.write("calm.yaml", automatic("calm", "calm.example"))
	in.trusted(roots, "calm.example")
	ca.mends()
	in.remove("busy.yaml")
	in.becomes("busy.example", "/", 404, "")
	in.write("busy.yaml", strings.Replace(automatic("busy", "busy.example"), `"/"`, `"/new"`, 1))
	in.becomes("busy.example", "/new", 200, "one /new")
	in.limited("busy", until)
	if got := ca.taken().Orders["busy.example"]; got != 0 {
		t.Errorf("the authority was asked before its time: %d orders", got)
	}
}

// TestRateLimitOfTheAccount checks that a rate limit for the whole account delays all later hosts, and ends by itself.
func TestRateLimitOfTheAccount(t *testing.T) {
	in, ca := issuingWeb(t)
	roots := ca.roots()
	in.write("first.yaml", automatic("first", "first.example"))
	in.trusted(roots, "first.example")
	until := time.Now().Add(3 * time.Hour).UTC()
	ca.fails(fault{
		Path: "order-plz", Times: 1, Status: 429, Type: rateLimited,
		Detail: "too many new orders (300) from this account in the last 3h0m0s, retry after " +
			until.Format(time.DateTime) + " UTC",
	})
	in.write("second.yaml", automatic("second", "second.example"))
	in.limited("second", until)
	in.write("third.yaml", automatic("third", "third.example"))
	in.limited("third", until)
	if got := ca.taken().Orders; got["third.example"] != 0 || got["first.example"] != 1 {
		t.Errorf("the authority took orders %v", got)
	}
}

// TestReloadDuringAnOrder checks that an order in progress continues when Caddy loads another configuration, and is not
// started again.
func TestReloadDuringAnOrder(t *testing.T) {
	ip, port := backend(t, "one")
	in, storage := newIngress(t), stored{t.TempDir()}
	ca := newAuthority(in)
	options := settings.Config{Issuers: []json.RawMessage{ca.issuer("")}}
	in.write("manifests.yaml", class+service("web", port, ip))
	in.issuingFrom(options, storage.module())
	ca.fails(fault{Path: "order-plz", Times: 1, Hold: 1000})
	in.write("web.yaml", automatic("web", "shop.example"))
	in.becomes("shop.example", "/", 200, "one /")
	in.issuingFrom(options, storage.module())
	in.trusted(ca.roots(), "shop.example")
	in.write("next.yaml", automatic("next", "next.example"))
	in.trusted(ca.roots(), "next.example")
	if got := ca.taken(); got.Orders["shop.example"] != 1 || len(got.Accounts) != 1 {
		t.Errorf("the authority took %+v", got)
	}
}

// TestCertificateOfADocument checks that a process that takes documents requests certificates for the hosts in the
// document.
func TestCertificateOfADocument(t *testing.T) {
	in := newIngress(t)
	ca := newAuthority(in)
	in.run(settings.Config{Issuers: []json.RawMessage{ca.issuer("")}},
		map[string]any{"module": "file_system", "root": t.TempDir()},
		&document.Live{Certificates: map[string]*ir.Certificate{"doc.example": {Automated: true}}})
	in.trusted(ca.roots(), "doc.example")
}
