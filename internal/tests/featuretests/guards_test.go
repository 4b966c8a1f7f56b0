package featuretests

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// guardCase is a test case for one guard in the table of annotations. Its Ingress is for the host NAME.example.
type guardCase struct {
	// beside are the other annotations of its Ingress. AUTH is replaced by an external service.
	beside []string
	// garbage is an invalid value, and good a valid one, for requests with headers. foreign names the same object in
	// the namespace "other".
	garbage, good, foreign string
	headers                []string
	// object is the object that good names, or empty. missing is the status without it. Zero means 503.
	object  string
	missing int
	// refused is the status with garbage. Zero means 503.
	refused int
	// service is the Service of its endpoints. Empty means "web".
	service string
	// ask sends the requests that show whether the guard works, and returns the status. Nil sends one request. passes
	// means that some of them may reach the endpoint.
	ask    func(g *guards, host string) int
	passes bool
}

// guards is an engine with an Ingress for each guard. The endpoints count the requests for each host.
type guards struct {
	*ingress
	// speaking has a client for each version of HTTP. The first one uses HTTP/1.1.
	speaking []*ingress
	service  *authService
	alice    *fixture.Identity
	mu       sync.Mutex
	seen     map[string]int
}

// ServeHTTP is the handler of the endpoints.
func (g *guards) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen[r.Host]++
	_, _ = io.WriteString(w, "seen")
}

func (g *guards) count(host string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[host]
}

// guardCases returns a case for each row of the table of annotations that rejects requests if it is invalid.
func guardCases(ca *fixture.Identity) map[string]guardCase {
	users, alice := htpasswd("auth-users", alicesLine), []string{basic("alice", "one")}
	password := []string{"auth-type", "basic", "auth-secret", "auth-users"}
	asking := []string{"auth-url", "AUTH"}
	limited := []string{"limit-rpm", "1", "limit-burst-multiplier", "1"}
	secured := opaque("endpoints", map[string][]byte{"ca.crt": ca.PEM()})
	return map[string]guardCase{
		"allowlist-source-range": {garbage: "nowhere", good: "127.0.0.0/8"},
		"whitelist-source-range": {garbage: "10.0.0.0/99", good: "127.0.0.0/8"},
		"denylist-source-range":  {garbage: "10.0.0.300", good: "192.0.2.0/24"},
		"k8singress.io/maintenance": {garbage: "yes", good: "false",
			beside: []string{"k8singress.io/maintenance-allowlist", "127.0.0.0/8"}},
		"k8singress.io/maintenance-allowlist": {garbage: "127.0.0.0/8,office", good: "127.0.0.0/8",
			beside: []string{"k8singress.io/maintenance", "true"}},
		"limit-rps":              {garbage: "many", good: "1000000"},
		"limit-rpm":              {garbage: "-1", good: "1000000"},
		"limit-burst-multiplier": {garbage: "0", good: "1000", beside: []string{"limit-rpm", "1000000"}},
		"limit-connections":      {garbage: "one", good: "100"},
		"limit-allowlist": {garbage: "everybody", good: "127.0.0.0/8", beside: limited, ask: (*guards).third,
			passes: true},
		"limit-whitelist": {garbage: "127.0.0.0/8,x", good: "127.0.0.0/8", beside: limited, ask: (*guards).third,
			passes: true},
		"auth-type": {garbage: "digest", good: "basic", beside: password[2:], object: users,
			headers: alice},
		"auth-secret": {
			garbage: "a/b/c", good: "auth-users", foreign: "other/auth-users", beside: password[:2], object: users,
			headers: alice,
		},
		"auth-secret-type": {garbage: "file", good: "auth-file", beside: password, object: users, headers: alice},
		"auth-url":         {garbage: "nowhere", good: "AUTH"},
		"auth-method":      {garbage: "POST; proxy_pass http://evil", good: "POST", beside: asking},
		"auth-response-headers": {
			garbage: "Connection", good: "X-User", beside: asking,
		},
		"auth-proxy-set-headers": {
			garbage: "a/b/c", good: "told", foreign: "other/told", beside: asking,
			object: configMap("told", "X-App: shop"),
		},
		"auth-cache-duration": {
			garbage: "200 for ever", good: "200 10m", beside: append(asking, "auth-cache-key", "$http_host"),
			ask: (*guards).kept, passes: true,
		},
		"auth-tls-secret": {
			garbage: "a/b/c", good: "default/ca", foreign: "other/ca", object: caSecret("ca", ca),
			refused: 403, missing: 403,
			ask: (*guards).asAlice,
		},
		"auth-tls-match-cn": {
			garbage: "(", good: "CN=alice", beside: []string{"auth-tls-secret", "default/ca"},
			object: caSecret("ca", ca), refused: 403, missing: 403,
			ask: (*guards).asAlice,
		},
		"canary": {garbage: "perhaps", good: "false", refused: 404},
		"canary-by-header-pattern": {
			garbage: "be(", good: "be(st|ta)", beside: []string{"canary", "true", "canary-by-header", "X-Canary"},
			headers: []string{"X-Canary: best"},
		},
		"cors-allow-origin": {
			garbage: "https//a.example", good: "https://a.example",
			beside: []string{"enable-cors", "true"}, refused: 403,
			ask: (*guards).byScript, passes: true,
		},
		"k8singress.io/chains": {garbage: "no such chain", good: "staff", headers: alice},
		"fastcgi-params-configmap": {
			garbage: "a/b/c", good: "params", foreign: "other/params", beside: []string{"backend-protocol", "FCGI"},
			service: "fastcgi",
			object:  configMap("params", "A: b"),
		},
		"configuration-snippet": {garbage: "auth_request /login;", good: "proxy_read_timeout 5s;"},
		"server-snippet":        {garbage: "auth_request /login;", good: "client_body_buffer_size 16k;"},
		"auth-snippet": {
			garbage: "deny all;", good: "proxy_set_header X-Real-IP $remote_addr;", beside: asking,
		},
		"modsecurity-snippet": {garbage: "SecRuleEngine On", good: "SecRuleEngine DetectionOnly"},
		"custom-headers": {
			garbage: "a/b/c", good: "answers", foreign: "other/answers",
			object: configMap("answers", "X-App: shop"),
		},
		"proxy-ssl-secret": {
			garbage: "a/b/c", good: "default/endpoints", foreign: "other/endpoints",
			beside:  []string{"backend-protocol", "HTTPS"},
			service: "secure", object: secured, missing: 502,
		},
	}
}

// third sends more requests than the limit allows, and returns the status of the last one.
func (g *guards) third(host string) int {
	g.Helper()
	return slices.Max(g.statuses(5, host, "/", "192.0.2.1"))
}

// kept returns the status of a request after the service has changed its response. It shows whether the first response
// was cached.
func (g *guards) kept(host string) int {
	g.Helper()
	defer g.service.answers(answersWith(http.StatusOK))
	g.service.answers(answersWith(http.StatusOK))
	if first := g.get(host, "/").status; first != http.StatusOK {
		return first
	}
	g.service.answers(answersWith(http.StatusServiceUnavailable))
	if second := g.get(host, "/").status; second != http.StatusInternalServerError {
		return second
	}
	return http.StatusServiceUnavailable
}

// asAlice sends a request with a client certificate, over TLS.
func (g *guards) asAlice(host string) int {
	g.Helper()
	version := g.version
	if !g.secure() {
		version = secure1
	}
	return g.fetch(g.showing(g.alice, host)[version], "https://"+host+"/").status
}

// byScript returns 403 if a browser would not give the response to a script.
func (g *guards) byScript(host string) int {
	g.Helper()
	got := g.sendBy(g.client, g.origin(host)+"/", http.MethodGet, nil, "Origin: https://a.example")
	if got.header.Get("Access-Control-Allow-Origin") == "" {
		return http.StatusForbidden
	}
	return got.status
}

// TestGuards checks each guard of the annotations' table with every fault: an unreadable value, and an object that is
// missing, is in another namespace, is deleted, and is created again. Meanwhile the endpoint gets no request, and the
// client is rejected, whatever version of HTTP it speaks.
func TestGuards(t *testing.T) {
	ca := fixture.Authority(t, nil, "ca")
	g := &guards{seen: map[string]int{}, service: &authService{}, alice: person(t, ca, "alice")}
	cases := guardCases(ca)
	for i := range annotations.Table {
		row := &annotations.Table[i]
		if _, ok := cases[row.Name]; ok != (row.OnError != nil) {
			t.Fatalf("%s: it is a guard: %t, and there is a case: %t", row.Name, row.OnError != nil, ok)
		}
	}
	base := g.endpoints(t, ca)
	g.ingress = start(t, base, staffOne, "configmap default/global")
	for _, version := range versions {
		g.speaking = append(g.speaking, g.ingress.speaking(t, version))
	}
	for _, stage := range guardStages {
		g.at(t, base, cases, stage)
	}
	g.serviceFails(t, cases)
	g.neverReloads()
}

// guardStage is a state of all guards and of the objects to which they refer.
type guardStage struct {
	name  string
	value func(c guardCase) string
	// there means that the objects exist.
	there bool
	want  func(c guardCase) int
}

func orElse(status int) int {
	if status == 0 {
		return http.StatusServiceUnavailable
	}
	return status
}

// withoutObject returns the status for cases that name no object.
func withoutObject(c guardCase) int {
	if c.object == "" {
		return http.StatusOK
	}
	return orElse(c.missing)
}

func good(c guardCase) string { return c.good }
func letsIn(_ guardCase) int  { return http.StatusOK }
func refuses(c guardCase) int { return orElse(c.refused) }

var guardStages = []guardStage{
	{"garbage", func(c guardCase) string { return c.garbage }, true, refuses},
	{"missing", good, false, withoutObject},
	{"of another namespace", func(c guardCase) string {
		if c.foreign != "" {
			return c.foreign
		}
		return c.garbage
	}, true, refuses},
	{"good", good, true, letsIn},
	{"deleted", good, false, withoutObject},
	{"restored", good, true, letsIn},
}

// endpoints returns the Services of the guards, which count their requests, and the service for external
// authentication.
func (g *guards) endpoints(t *testing.T, ca *fixture.Identity) string {
	t.Helper()
	web, webPort := endpointOf(t, g.ServeHTTP)
	_, fastPort := fastCGI(t, g.ServeHTTP)
	_, securePort := serving(t, &tls.Config{Certificates: []tls.Certificate{named(t, ca, "web.internal").Pair()}},
		g.ServeHTTP)
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		g.service.mu.Lock()
		answer := g.service.answer
		g.service.mu.Unlock()
		answer(w, r)
	})
	g.service.service, g.service.answer = "http://"+ip+":"+port, answersWith(http.StatusOK)
	return class + service("web", webPort, web) + service("fastcgi", fastPort, web) + service("secure", securePort,
		web) + service("none", "1") +
		global("global-allowed-response-headers: X-App", "annotations-risk-level: Critical",
			`allow-snippet-annotations: "true"`)
}

// at brings all guards into a state, and checks the responses.
func (g *guards) at(t *testing.T, base string, cases map[string]guardCase, stage guardStage) {
	var manifests strings.Builder
	manifests.WriteString(base)
	objects := map[string]bool{}
	for name, c := range cases {
		text := annotated(short(name), hostOf(name), orWeb(c.service),
			append(slices.Clone(c.beside), name, stage.value(c))...)
		manifests.WriteString(strings.ReplaceAll(text, "AUTH", g.service.service))
		objects[c.object] = true
	}
	for object := range objects {
		manifests.WriteString(elsewhere("other", object))
		if stage.there {
			manifests.WriteString(object)
		}
	}
	manifests.WriteString(rule("main", hostOf("canary-by-header-pattern"), "Prefix", "/", "none"))
	g.write("manifests.yaml", manifests.String())
	for name, c := range cases {
		host, want := hostOf(name), stage.want(c)
		g.eventually(name+", "+stage.name, func() error {
			if got := g.statusOf(c, host); got != want {
				return fmt.Errorf("with %q it is %d, want %d", stage.value(c), got, want)
			}
			return nil
		})
		for _, in := range g.speaking {
			g.ingress = in
			before := g.count(host)
			if got := g.statusOf(c, host); got != want {
				t.Errorf("%s with %q: first %d, and then %d by %s", name, stage.value(c), want, got, in.version)
			}
			if seen := g.count(host) > before; !c.passes && seen != (want == http.StatusOK) {
				t.Errorf("%s with %q: the endpoint sees a request that gets %d by %s: %t", name, stage.value(c), want,
					in.version, seen)
			}
		}
		g.ingress = g.speaking[0]
	}
}

// statusOf returns the status of a request that the guard must accept.
func (g *guards) statusOf(c guardCase, host string) int {
	g.Helper()
	if c.ask != nil {
		return c.ask(g, host)
	}
	return g.sendBy(g.client, g.origin(host)+"/", http.MethodGet, nil, c.headers...).status
}

func short(name string) string  { return strings.TrimPrefix(name, annotations.OwnPrefix) }
func hostOf(name string) string { return short(name) + ".example" }

func orWeb(service string) string {
	if service == "" {
		return "web"
	}
	return service
}

// serviceFails checks that no request is accepted if the service rejects it or returns no decision.
func (g *guards) serviceFails(t *testing.T, cases map[string]guardCase) {
	t.Helper()
	for answer, want := range map[int]int{401: 401, 403: 403, 302: 500, 404: 500, 500: 500, 503: 500} {
		g.service.answers(answersWith(answer))
		for name, c := range cases {
			if c.passes || name != "auth-url" && !slices.Contains(c.beside, "auth-url") {
				continue
			}
			before := g.count(hostOf(name))
			if got := g.statusOf(c, hostOf(name)); got != want {
				t.Errorf("%s: the service says %d, and the client gets %d, want %d", name, answer, got, want)
			}
			if g.count(hostOf(name)) != before {
				t.Errorf("%s: the service says %d, and the endpoint sees the request", name, answer)
			}
		}
	}
}

// TestUnreadableGuardReturns503 checks that an Ingress with an unreadable guard rejects all clients, and that
// another Ingress of the same host keeps working.
func TestUnreadableGuardReturns503(t *testing.T) {
	ip, port := backend(t, "one")
	guarded := strings.Replace(rule("guarded", "guarded.example", "Prefix", "/admin", "one"), "{name: guarded}",
		`{name: guarded, annotations: {nginx.ingress.kubernetes.io/denylist-source-range: nowhere}}`, 1)
	in := start(t, class+service("one", port, ip)+guarded+rule("open", "guarded.example", "Prefix", "/", "one"))
	in.byEachVersion(t, func(_ *testing.T, in *ingress) {
		in.expect("guarded.example", "/admin", http.StatusServiceUnavailable, "")
		in.expect("guarded.example", "/admin/users", http.StatusServiceUnavailable, "")
		in.expect("guarded.example", "/", http.StatusOK, "one /")
	})
}
