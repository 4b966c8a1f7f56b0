package featuretests

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// tenant puts objects into a namespace, and sets their creation time to a second of a minute.
func tenant(namespace string, second int, manifests ...string) string {
	return strings.ReplaceAll(join(manifests...), "metadata: {",
		fmt.Sprintf(`metadata: {namespace: %s, creationTimestamp: "2020-01-01T00:00:%02dZ", `, namespace, second))
}

// only returns an Ingress with a default backend and no rules.
func only(name, service string) string {
	return fmt.Sprintf(`---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %s}
spec: {ingressClassName: nginx, defaultBackend: {service: {name: %s, port: {number: 80}}}}
`, name, service)
}

// rivals are the Services of two namespaces. They respond with the name of their namespace in capital letters.
func rivals(t *testing.T) string {
	aIP, aPort := backend(t, "A")
	bIP, bPort := backend(t, "B")
	return class + tenant("a", 0, service("one", aPort, aIP)) + tenant("b", 0, service("one", bPort, bIP))
}

// attacks writes the objects of the namespace b, and waits until they have taken effect, which a host of b shows.
func (in *ingress) attacks(second int, manifests ...string) {
	in.Helper()
	// An earlier probe may respond before the next generation has taken effect.
	probe := fmt.Sprintf("b%d.example", time.Now().UnixNano())
	in.write("b.yaml", tenant("b", second,
		append(manifests, annotate(rule("probe", probe, "Prefix", "/", "one"), "ssl-redirect", "false"))...))
	in.becomes(probe, "/", http.StatusOK, "B /")
}

// expectConflict fails the test unless an object has a HostConflict problem that names another object.
func (in *ingress) expectConflict(object, other string) {
	in.Helper()
	in.awaitVerdict(object, "HostConflict", other)
}

// TestTenant02DefaultBackend checks that a namespace's default backend serves no other namespace's host.
func TestTenant02DefaultBackend(t *testing.T) {
	in := start(t, rivals(t)+tenant("a", 10,
		rule("main", "plain.example", "Prefix", "/app", "one"),
		rule("wild", "*.wild.example", "Prefix", "/app", "one")))
	for _, age := range []int{20, 5} {
		in.attacks(age, only("grab", "one"))
		in.expect("plain.example", "/app", http.StatusOK, "A /app")
		in.expect("plain.example", "/other", http.StatusNotFound, "")
		in.expect("plain.example", "/app2/evil.js", http.StatusNotFound, "")
		in.expect("x.wild.example", "/other", http.StatusNotFound, "")
		in.expect("nobody.example", "/", http.StatusOK, "B /")
	}
	in.write("more.yaml", tenant("a", 30, only("rest", "one")))
	in.becomes("plain.example", "/other", http.StatusOK, "A /other")
	in.expect("nobody.example", "/", http.StatusOK, "B /")
	in.expect("b-none.example", "/", http.StatusOK, "B /")
}

// TestTenant03Paths checks that a younger Ingress of another namespace cannot take a path of the owner, and that both
// get a warning.
func TestTenant03Paths(t *testing.T) {
	in := start(t, rivals(t)+tenant("a", 10,
		rule("main", "s.example", "Prefix", "/", "one"), rule("public", "s.example", "Exact", "/public", "one"),
		annotate(rule("staff", "s.example", "Prefix", "/admin", "one"), "k8singress.io/chains", "staff"),
	), "chain staff {\nrespond 401\n}")
	in.attacks(20,
		annotate(rule("long", "s.example", "ImplementationSpecific", "/()()()()()()()()()", "one"),
			"rewrite-target", "/x"),
		annotate(rule("choice", "s.example", "ImplementationSpecific", "/xxxxxxxxxxxxxxxx|/admin", "one"),
			"rewrite-target", "/x"),
		annotate(rule("same", "s.example", "ImplementationSpecific", "/admin", "one"), "rewrite-target", "/x"),
	)
	ip, port := backend(t, "C")
	in.write("c.yaml", tenant("c", 30, service("one", port, ip),
		annotate(rule("honest", "s.example", "ImplementationSpecific", "/api(/|$)(.*)", "one"),
			"rewrite-target", "/$2"),
		rule("login", "s.example", "Exact", "/login", "one")))
	// Paths that the namespace a does not define are shared.
	in.becomes("s.example", "/login", http.StatusOK, "C /login")
	for path, want := range map[string]int{
		"/": 200, "/public": 200, "/anything": 200, "/admin": 401, "/admin/x": 401, "/xxxxxxxxxxxxxxxx": 200,
		// The paths of a are not regular expressions, which would match prefixes in any case.
		"/publicXYZ": 200, "/PUBLIC": 200, "/ADMIN": 200, "/adminx": 200,
	} {
		body := "A " + path
		if want != http.StatusOK {
			body = ""
		}
		in.expect("s.example", path, want, body)
	}
	in.expect("s.example", "/api/users", http.StatusOK, "C /users")
	in.expect("s.example", "/apis", http.StatusOK, "A /apis")
	in.expectConflict("Ingress/a/staff", "Ingress/b/")
	for _, object := range []string{"b/long", "b/same", "c/login", "c/honest"} {
		in.expectConflict("Ingress/"+object, "Ingress/a/staff")
	}
}

// TestTenant03Ownership checks that with host_ownership namespace a host serves nothing from other namespaces, and
// that host_owner sets which namespace may own a host.
func TestTenant03Ownership(t *testing.T) {
	in := start(t, rivals(t)+tenant("a", 10,
		rule("main", "s.example", "Prefix", "/app", "one"), rule("wild", "*.w.example", "Prefix", "/", "one"),
	)+tenant("c", 1, rule("solver", "s.example", "Exact", "/.well-known/acme-challenge/c", "one")),
		"host_ownership namespace", "host_owner *.shop.example shop a", "acme_solver_namespaces c*")
	in.attacks(20,
		rule("path", "s.example", "Prefix", "/app/b", "one"), rule("regex", "s.example", "Prefix", "/()()", "one"),
		rule("challenge", "s.example", "Prefix", "/.well-known/acme-challenge", "one"),
		rule("below", "x.w.example", "Prefix", "/", "one"), rule("reserved", "free.shop.example", "Prefix", "/", "one"),
		rule("own", "*.b.example", "Prefix", "/", "one"), only("rest", "one"),
	)
	in.expect("s.example", "/app/b", http.StatusOK, "A /app/b")
	in.expect("s.example", "/", http.StatusNotFound, "")
	in.expect("s.example", "/.well-known/acme-challenge/b", http.StatusNotFound, "")
	// The namespace c has no Service.
	in.expect("s.example", "/.well-known/acme-challenge/c", http.StatusServiceUnavailable, "")
	in.expect("x.w.example", "/", http.StatusOK, "A /")
	in.expect("free.shop.example", "/", http.StatusOK, "B /") // The default backend responds, as for any unknown name.
	in.expect("x.b.example", "/", http.StatusOK, "B /")
	for name, owner := range map[string]string{
		"path": "Ingress/a/main", "challenge": "Ingress/a/main", "below": "Ingress/a/wild", "reserved": "shop, a",
	} {
		in.expectConflict("Ingress/b/"+name, owner)
	}
	in.expectConflict("Ingress/a/main", "Ingress/b/path")
	// The host moves when its owner is removed, and not before.
	in.write("manifests.yaml", rivals(t))
	in.becomes("s.example", "/app/b", http.StatusOK, "B /app/b")
	in.becomes("x.w.example", "/", http.StatusOK, "B /")
}

// TestTenant20OlderIngress checks that the age of an Ingress decides, not the age of its rules: an older Ingress takes
// over a host when a rule for it is added. The previous owner gets a warning, and host_owner prevents the takeover.
func TestTenant20OlderIngress(t *testing.T) {
	for name, c := range map[string]struct{ option, want string }{
		"by age": {"", "B /app"}, "reserved": {"host_owner *.example a", "A /app"},
	} {
		t.Run(name, func(t *testing.T) {
			in := start(t, rivals(t)+tenant("a", 10, rule("main", "www.s.example", "Prefix", "/app", "one")),
				"host_ownership namespace", c.option)
			in.write("b.yaml", tenant("b", 5, rule("old", "b.test", "Prefix", "/", "one")))
			in.becomes("b.test", "/", http.StatusOK, "B /")
			in.expect("www.s.example", "/app", http.StatusOK, "A /app")
			in.write("b.yaml", tenant("b", 5, rule("old", "www.s.example", "Prefix", "/", "one"),
				rule("probe", "c.test", "Prefix", "/", "one")))
			in.becomes("c.test", "/", http.StatusOK, "B /")
			in.expect("www.s.example", "/app", http.StatusOK, c.want)
			if c.option == "" {
				in.expectConflict("Ingress/a/main", "Ingress/b/old")
			} else {
				in.expectConflict("Ingress/b/old", "reserves for the namespaces a")
			}
		})
	}
}

// TestTenant04Issuers checks that tls entries of another namespace, including invalid ones, do not prevent a
// certificate request to an issuer.
func TestTenant04Issuers(t *testing.T) {
	in := newIngress(t)
	in.write("manifests.yaml", rivals(t)+tenant("a", 10,
		rule("shop", "shop.com", "Prefix", "/", "one"), rule("www", "www.acme.org", "Prefix", "/", "one"),
		rule("own", "own.acme.org", "Prefix", "/", "one")))
	in.issuing(settings.Config{AutoHTTPS: settings.AutoHTTPSAll,
		Issuers: []json.RawMessage{json.RawMessage(`{"module":"internal"}`)}})
	has := func(hosts ...string) {
		t.Helper()
		for _, host := range hosts {
			in.eventually("certificate", func() error {
				if got := in.certificate(host); !slices.Contains(got, host) {
					return fmt.Errorf("%s is shown %v", host, got)
				}
				return nil
			})
		}
	}
	has("shop.com", "www.acme.org", "own.acme.org")
	evil := newCertificate(t, "EVIL", "*.com", "*.acme.org", "x.org")
	for _, junk := range []string{
		opaque("junk", map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("x")}),
		tlsSecret("junk", evil.certificate, evil.key),
	} {
		grab := []string{
			junk, withTLS(rule("grab", "none.example", "Prefix", "/", "one"), "*.com", "junk"),
			withTLS(rule("below", "b.acme.org", "Prefix", "/", "one"), "*.acme.org", "junk"),
		}
		in.attacks(5, grab...)
		has("shop.com", "www.acme.org", "own.acme.org")
		in.attacks(20, append(grab, withTLS(rule("name", "own.acme.org", "Prefix", "/b", "one"),
			"own.acme.org", "junk"))...)
		has("shop.com", "www.acme.org", "own.acme.org")
		in.expectConflict("Ingress/b/name", "Ingress/a/own")
	}
	// The certificate of the host's own namespace is used while it is valid.
	wild := newCertificate(t, "WILD", "*.acme.org")
	listing := tenant("a", 12, withTLS(rule("wild", "w.acme.org", "Prefix", "/", "one"), "*.acme.org", "wild"))
	in.write("wild.yaml", listing+tenant("a", 0, tlsSecret("wild", wild.certificate, wild.key)))
	in.showsCertificate("www.acme.org", "WILD")
	in.write("wild.yaml", listing+tenant("a", 0, tlsSecret("wild", []byte("x"), wild.key)))
	has("www.acme.org")
}

// TestTenant04Secrets checks that a namespace cannot set the certificate of another namespace's host.
func TestTenant04Secrets(t *testing.T) {
	good, evil := newCertificate(t, "GOOD", "a.example"),
		newCertificate(t, "EVIL", "plain.example", "a.example", "*.example", "*.w.example")
	const fake = "Kubernetes Ingress Controller Fake Certificate"
	in := start(t, rivals(t)+tenant("a", 10,
		rule("plain", "plain.example", "Prefix", "/", "one"),
		withTLS(rule("main", "a.example", "Prefix", "/", "one"), "a.example", "good"),
		withTLS(rule("missing", "missing.example", "Prefix", "/", "one"), "missing.example", "gone"),
		withTLS(rule("wild", "x.w.example", "Prefix", "/", "one"), "*.w.example", "wild"),
		tlsSecret("good", good.certificate, good.key), func() string {
			wild := newCertificate(t, "WILD", "*.w.example")
			return tlsSecret("wild", wild.certificate, wild.key)
		}(),
	))
	squat := func(name, host, listed string) string {
		return withTLS(rule(name, host, "Prefix", "/b", "one"), listed, "evil")
	}
	for _, age := range []int{5, 20} {
		// With an older Ingress, but no rule for the host; with a younger one also with a rule.
		listed := squat("one", "none.example", "plain.example") + squat("two", "none.example", "a.example")
		if age == 20 {
			listed = squat("one", "plain.example", "plain.example") + squat("two", "a.example", "a.example")
		}
		in.attacks(age, listed, squat("three", "b.w.example", "*.w.example"),
			tlsSecret("evil", evil.certificate, evil.key))
		for host, want := range map[string]string{
			"plain.example": fake, "a.example": "GOOD", "missing.example": fake, "x.w.example": "WILD",
			"b.w.example": "EVIL",
		} {
			if got := in.certificate(host)[0]; got != want {
				t.Errorf("with %d, %s is shown the certificate %s, want %s", age, host, got, want)
			}
		}
	}
	in.expectConflict("Ingress/b/one", "Ingress/a/plain")
	// A wildcard certificate is used if the owner names no Secret, but not if the owner's Secret is missing.
	in.attacks(20, squat("wild", "none.example", "*.example"), tlsSecret("evil", evil.certificate, evil.key))
	for host, want := range map[string]string{"plain.example": "EVIL", "a.example": "GOOD", "missing.example": fake} {
		if got := in.certificate(host)[0]; got != want {
			t.Errorf("with the wildcard, %s is shown the certificate %s, want %s", host, got, want)
		}
	}
}

// TestTenant09HostWide checks that settings for a whole host come from the namespace that owns it.
func TestTenant09HostWide(t *testing.T) {
	root := fixture.Authority(t, nil, "root")
	own := newCertificate(t, "OWN", "a.example")
	in := start(t, rivals(t)+tenant("a", 10,
		withTLS(rule("main", "a.example", "Prefix", "/", "one"), "a.example", "own"),
		tlsSecret("own", own.certificate, own.key),
		rule("plain", "plain.example", "Prefix", "/app", "one"),
		annotate(rule("mtls", "mtls.example", "Prefix", "/", "one"), "auth-tls-secret", "a/ca"), caSecret("ca", root),
	))
	in.attacks(20,
		annotate(rule("closing", "plain.example", "Prefix", "/b-only", "one"), "auth-tls-secret", "b/none"),
		withTLS(rule("redirecting", "*.example", "Prefix", "/", "one"), "*.example", "gone"),
		annotate(rule("ciphers", "a.example", "Prefix", "/b", "one"), "ssl-ciphers", "ECDHE-RSA-AES128-SHA"),
		rule("challenge", "mtls.example", "Prefix", "/.well-known/acme-challenge", "one"),
	)
	in.expect("plain.example", "/app", http.StatusOK, "A /app")
	in.expect("plain.example", "/b-only", http.StatusForbidden, "")
	in.expectConflict("Ingress/b/closing", "Ingress/a/plain")
	in.expectConflict("Ingress/b/ciphers", "Ingress/a/main")
	in.expectConflict("Ingress/b/challenge", "Ingress/a/mtls")
	conn, err := tls.Dial("tcp", in.https,
		&tls.Config{ServerName: "a.example", InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if err != nil {
		t.Errorf("TLS 1.2 with an ECDSA certificate: %v", err)
	} else {
		conn.Close()
	}
	challenge := "/.well-known/acme-challenge/token"
	in.expect("mtls.example", challenge, http.StatusForbidden, "")
	for protocol, client := range in.showing(nil, "mtls.example") {
		if got := in.fetch(client, "https://mtls.example"+challenge); got.status != http.StatusForbidden {
			t.Errorf("by %s a stranger gets %d %q", protocol, got.status, got.body)
		}
	}
	// The owner's Ingress responds without a certificate.
	in.write("solver.yaml", tenant("a", 30,
		rule("solver", "mtls.example", "Exact", "/.well-known/acme-challenge/own", "one")))
	in.becomes("mtls.example", "/.well-known/acme-challenge/own", http.StatusOK, "A /.well-known/acme-challenge/own")
}
