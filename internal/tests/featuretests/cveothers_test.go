package featuretests

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestCVEOfOthers checks attacks from advisories about other controllers and Caddy that need more than a manifest.
// TestCVE has the rest. For some advisories the test of the feature already checks the attack, and is run again.
func TestCVEOfOthers(t *testing.T) {
	for name, test := range map[string]func(t *testing.T){
		"CVE-2021-25742: a snippet leaves its block, or reads files":                      TestSnippetEscapes,
		"CVE-2025-1974: a client sends an AdmissionReview to a port of the controller":    noWebhook,
		"CVE-2026-67309 (GHSA-8rxv-jg7p-wvg3): a traversal behind rewrite-target":         traversalBehindRewrite,
		"CVE-2026-48020 (GHSA-xf64-8mw2-4gr2): a traversal behind a prefix that goes":     traversalBehindPrefix,
		"CVE-2025-66491 (GHSA-7vww-mvcr-x6vj): proxy-ssl-verify on":                       verifyOnVerifies,
		"CVE-2026-85596 (GHSA-rgpg-cpwg-4f45): Ingresses share a client certificate":      sharedClientCertificates,
		"CVE-2026-24513: a default backend answers 200 on 401 and 403":                    TestErrorPagesKeepStatus,
		"CVE-2026-39858: a client writes a header of the service":                         TestHeaderNamesOfTheService,
		"CVE-2026-26998: the service that is asked fails":                                 TestExternalAuthFails,
		"CVE-2026-77281 (GHSA-j8px-rmrx-76h9): Caddy reads a placeholder again":           placeholdersReadOnce,
		"CVE-2026-27589: another origin replaces the configuration by Caddy's admin API":  otherOrigins,
		"GHSA-5r4w-85f3-pw66: domain fronting past the client certificates of a wildcard": domainFronting,
	} {
		t.Run(name, test)
	}
}

// secretEndpoint starts an endpoint that responds with the path of the request.
func secretEndpoint(t *testing.T) (ip, port string) {
	t.Helper()
	return endpointOf(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "endpoint ", r.RequestURI) })
}

// rewriting starts Ingresses of a host whose path /admin is restricted to other clients. One of them has a path with
// pattern and the rewrite-target.
func rewriting(t *testing.T, pattern, target string) *ingress {
	t.Helper()
	ip, port := secretEndpoint(t)
	return start(t, class+service("one", port, ip)+
		annotate(rule("a", "a.example", "ImplementationSpecific", pattern, "one"), "rewrite-target", target)+
		annotate(rule("admin", "a.example", "Prefix", "/admin", "one"), "whitelist-source-range", "192.0.2.0/24"))
}

// noTraversal sends paths that lead up from a prefix. No endpoint may get a path that it could read as a path below
// /admin. behind is the expected response to dots right after the prefix.
func (in *ingress) noTraversal(t *testing.T, prefix, behind string) {
	t.Helper()
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, up := range []string{"..", "%2e%2e", ".%2E", "..%2f", "%2e%2e%2f", "..%5c", "..;", "..%3b"} {
			for _, middle := range []string{"", "/", "//", "/x/" + up + "/"} {
				q := question{path: prefix + middle + up + "/admin"}
				got := in.exchange(q.usual())
				if reached, ok := strings.CutPrefix(got.body, "endpoint "); ok && readsAsAdmin(reached) {
					t.Errorf("%s: the endpoint gets %s", q.path, reached)
				}
			}
		}
		for path, want := range map[string]string{
			prefix + "/x": "200 endpoint /x", prefix + "../admin": behind, prefix + "%2e%2e/admin": behind,
			"/admin": "403", prefix + "/../admin": "403", prefix + "/x/../../admin": "403",
		} {
			q := question{path: path}
			if got := in.exchange(q.usual()); got.String() != want {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
		}
	})
}

// readsAsAdmin reports whether an endpoint may take a path for one below /admin: decoded once or twice, with parameters
// cut off, and with backslashes for slashes.
func readsAsAdmin(target string) bool {
	for range 3 {
		read := strings.ReplaceAll(target, `\`, "/")
		elements := strings.Split(read, "/")
		for i := range elements {
			elements[i], _, _ = strings.Cut(elements[i], ";")
		}
		if strings.HasPrefix(path.Clean("/"+strings.Join(elements, "/"))+"/", "/admin/") {
			return true
		}
		decoded, err := url.PathUnescape(target)
		if err != nil {
			return false
		}
		target = decoded
	}
	return false
}

// traversalBehindRewrite checks a rewrite-target with a group that matches the text right after the prefix.
func traversalBehindRewrite(t *testing.T) {
	rewriting(t, "/api/?(.*)", "/$1").noTraversal(t, "/api", "400")
}

func traversalBehindPrefix(t *testing.T) {
	rewriting(t, "/public(/.*)", "$1").noTraversal(t, "/public", "404")
}

func verifyOnVerifies(t *testing.T) {
	ca, other := fixture.Authority(t, nil, "ca"), fixture.Authority(t, nil, "other")
	manifests := class
	for name, issuer := range map[string]*fixture.Identity{"good": ca, "bad": other} {
		pair := named(t, issuer, "web.internal").Pair()
		ip, port := over(t, &tls.Config{Certificates: []tls.Certificate{pair}})
		trusted := map[string][]byte{"ca.crt": ca.PEM()}
		manifests += secured(name, ip, port, trusted, "proxy-ssl-verify", "on", "proxy-ssl-name", "web.internal")
	}
	in := start(t, manifests)
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for host, want := range map[string]int{"good.example": http.StatusOK, "bad.example": http.StatusBadGateway} {
			if got := in.get(host, "/"); got.status != want {
				t.Errorf("%s: %d %q, want %d", host, got.status, got.body, want)
			}
		}
	})
}

// sharedClientCertificates checks two Ingresses for each host, of which the second is the older one. If they request
// client certificates in different ways, the host still requests them.
func sharedClientCertificates(t *testing.T) {
	ip, port := secretEndpoint(t)
	ca, other := fixture.Authority(t, nil, "ca"), fixture.Authority(t, nil, "other")
	manifests := class + service("one", port, ip) + caSecret("ca", ca) + caSecret("other", other)
	hosts := map[string][2][]string{
		"none":     {{"auth-tls-secret", "default/ca"}, nil},
		"first":    {nil, {"auth-tls-secret", "default/ca"}},
		"same":     {{"auth-tls-secret", "default/ca"}, {"auth-tls-secret", "default/ca"}},
		"conflict": {{"auth-tls-secret", "default/ca"}, {"auth-tls-secret", "default/other"}},
		"off": {
			{"auth-tls-secret", "default/ca", "auth-tls-verify-client", "off"}, {"auth-tls-secret", "default/ca"},
		},
		"missing": {{"auth-tls-secret", "default/ca"}, {"auth-tls-secret", "default/missing"}},
	}
	for name, both := range hosts {
		for i, annotations := range both {
			one := rule(fmt.Sprint(name, i), name+".example", "Prefix", fmt.Sprint("/", i), "one")
			if annotations != nil {
				one = annotate(one, annotations...)
			}
			manifests += one
		}
	}
	in := start(t, manifests)
	for name := range hosts {
		host := name + ".example"
		for protocol, client := range in.showing(nil, host) {
			for i := range 2 {
				got := in.fetch(client, fmt.Sprintf("https://%s/%d", host, i))
				if got.status != http.StatusBadRequest && got.status != http.StatusForbidden {
					t.Errorf("%s/%d, %s: without a certificate: %d %q", host, i, protocol, got.status, got.body)
				}
			}
		}
	}
	for protocol, client := range in.showing(person(t, ca, "alice"), "same.example") {
		if got := in.fetch(client, "https://same.example/1"); got.status != http.StatusOK {
			t.Errorf("%s: a client with a certificate gets %d %q", protocol, got.status, got.body)
		}
	}
}

// domainFronting sends requests for a host that requires client certificates on a connection for another host. One
// certificate covers both hosts, so a browser would use one connection for both (coalescing).
func domainFronting(t *testing.T) {
	ip, port := secretEndpoint(t)
	ca := fixture.Authority(t, nil, "ca")
	both := fixture.Certificate(t, "open.example", "*.safe.example")
	hosts := "\n  tls: [{hosts: [open.example, '*.safe.example'], secretName: both}]\n  rules:"
	manifests := class + service("one", port, ip) + caSecret("ca", ca) + tlsSecret("both", both.PEM(), both.KeyPEM())
	for _, one := range []string{
		rule("open", "open.example", "Prefix", "/", "one"),
		annotate(rule("safe", "*.safe.example", "Prefix", "/", "one"), "auth-tls-secret", "default/ca"),
	} {
		manifests += strings.Replace(one, "\n  rules:", hosts, 1)
	}
	in := start(t, manifests)
	alice := person(t, ca, "alice").Pair()
	for version, connect := range map[string]func(*testing.T, *tls.Config) http.RoundTripper{
		secure2: in.coalescing2, secure3: in.coalescing3,
	} {
		t.Run(version, func(t *testing.T) {
			for _, c := range []struct {
				server string
				want   map[string]int
			}{
				{"open.example", map[string]int{"open.example": 200, "a.safe.example": 421, "b.safe.example": 421}},
				{"a.safe.example", map[string]int{"a.safe.example": 200, "b.safe.example": 421, "open.example": 421}},
			} {
				config := anybody()
				config.ServerName, config.Certificates = c.server, []tls.Certificate{alice}
				connection := connect(t, config)
				// The response to a request must not depend on the requests before it.
				hosts := []string{"a.safe.example", "open.example", "b.safe.example", c.server, "a.safe.example"}
				for _, host := range hosts {
					if got := ask(t, connection, host); got != c.want[host] {
						t.Errorf("on a connection for %s, %s answers %d, want %d", c.server, host, got, c.want[host])
					}
				}
			}
		})
	}
}

func ask(t *testing.T, connection http.RoundTripper, host string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := connection.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, response).status
}

// coalescing2 returns an HTTP/2 transport that sends every request on one connection.
func (in *ingress) coalescing2(t *testing.T, config *tls.Config) http.RoundTripper {
	t.Helper()
	transport := in.clientOf(t, secure2, config).Transport.(*http.Transport)
	conn, err := transport.NewClientConn(t.Context(), "https", net.JoinHostPort(config.ServerName, "443"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// coalescing3 returns an HTTP/3 transport with one connection.
func (in *ingress) coalescing3(t *testing.T, config *tls.Config) http.RoundTripper {
	t.Helper()
	config.NextProtos = []string{http3.NextProtoH3}
	conn, err := quic.DialAddr(t.Context(), in.https, config, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseWithError(0, "") })
	return new(http3.Transport).NewClientConn(conn)
}

// placeholdersReadOnce checks chains whose handlers insert client input into other texts. A placeholder in the input
// stays text.
func placeholdersReadOnce(t *testing.T) {
	t.Setenv("CANARY", fromEnvironment)
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.RequestURI, " ", r.Header["X-Out"], r.Header["X-In"])
	})
	const (
		sent  = "{http.request.header.X-In}"
		leaks = "\nrespond @leak leaked-" + fromEnvironment + "\nrespond {vars.v}"
	)
	chains := map[string]string{
		"answers":   `respond "` + sent + `"`,
		"sends":     "header X-Out " + sent + "\nrespond ok",
		"passes":    "request_header X-Out " + sent + "\nrequest_header X-In env (env)",
		"rewrites":  "rewrite * /to/" + sent + "?q=" + sent,
		"redirects": "redir * /to/" + sent,
		"vars":      "vars v " + sent + "\nrespond {vars.v}",
		"maps":      "map " + sent + " {mapped} {\ndefault " + sent + "\n}\nrespond {mapped}",
		"matches":   "vars v " + sent + "\n@leak vars_regexp v " + fromEnvironment + leaks,
		"compares":  "vars v " + sent + "\n@leak vars v " + fromEnvironment + leaks,
		"fails":     "error " + sent + " 403",
	}
	manifests, options := class+service("one", port, ip), []string(nil)
	for name, text := range chains {
		manifests += annotated(name, name+".example", "one", "k8singress.io/chains", name)
		options = append(options, "chain "+name+" {\n"+text+"\n}")
	}
	start(t, manifests, options...).byEachVersion(t, func(t *testing.T, in *ingress) {
		for name := range chains {
			got := in.sendBy(in.client, in.origin(name+".example")+"/", http.MethodGet, nil, "X-In: {env.CANARY}")
			whole := fmt.Sprint(got.status, got.header, got.body)
			mute(t, name, whole)
			if name != "fails" && !strings.Contains(whole, "env.CANARY") {
				t.Errorf("%s: what the client has sent is not there: %s", name, whole)
			}
		}
	})
}

// otherOrigins sends requests to the admin API like a browser that shows a page of another origin. Neither Caddy's
// configuration nor the document may change.
func otherOrigins(t *testing.T) {
	ip, port := backend(t, "one")
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one"))
	document := string(in.document())
	for _, target := range []struct{ method, path string }{
		{http.MethodPost, "/load"}, {http.MethodPut, "/k8singress/config"}, {http.MethodDelete, "/config/"},
		{http.MethodPost, "/stop"}, {http.MethodPatch, "/config/apps/k8singress"},
	} {
		url := "http://" + in.admin + target.path
		for _, headers := range [][]string{
			{"Origin: https://evil.example"},
			{"Origin: http://evil.example", "Sec-Fetch-Mode: cors", "Sec-Fetch-Site: cross-site"},
			{"Origin: null"},
			{"Sec-Fetch-Mode: no-cors"},
			{"Sec-Fetch-Mode: navigate", "Referer: https://evil.example/page"},
			{"Sec-Fetch-Mode: navigate"},
			{"Host: evil.example", "Origin: http://evil.example"},
			{"Host: evil.example"},
		} {
			headers = append(headers, "Content-Type: application/json")
			got := in.sendBy(in.admins, url, target.method, strings.NewReader("{}"), headers...)
			if got.status != http.StatusForbidden && got.status != http.StatusBadRequest {
				t.Errorf("%s %s with %q: %d %s", target.method, target.path, headers, got.status, got.body)
			}
		}
	}
	in.expect("a.example", "/", http.StatusOK, "one /")
	if now := string(in.document()); now != document {
		t.Errorf("the document is now %s", now)
	}
	// The admin API rejects the requests because of the browser's header fields, not because of their content.
	got := in.sendBy(in.admins, "http://"+in.admin+"/config/apps/k8singress", http.MethodGet, nil)
	if got.status != http.StatusOK {
		t.Errorf("without a browser: %d %s", got.status, got.body)
	}
}
