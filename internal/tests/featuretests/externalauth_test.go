package featuretests

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// authService is an external authentication service that stores its requests, with a backend that stores its own.
type authService struct {
	mu          sync.Mutex
	asked, seen []*http.Request
	answer      http.HandlerFunc
	service     string
}

// externalAuth serves hosts with annotations behind an external authentication service. The keys of hosts are names;
// the values are lines of annotations, in which AUTH is replaced with the service. So it is in keys, the entries of the
// ConfigMap.
func externalAuth(t *testing.T, hosts map[string][]string, keys ...string) (*ingress, *authService) {
	t.Helper()
	a := &authService{answer: letIn}
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.asked = append(a.asked, r.Clone(r.Context()))
		answer := a.answer
		a.mu.Unlock()
		answer(w, r)
	})
	a.service = "http://" + net.JoinHostPort(ip, port)
	ip, port = endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.seen = append(a.seen, r.Clone(r.Context()))
		a.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprintf(w, "web %s", body)
	})
	manifests := class + service("web", port, ip) + strings.ReplaceAll(global(keys...), "AUTH", a.service)
	for name, annotations := range hosts {
		for i := range annotations {
			annotations[i] = strings.ReplaceAll(annotations[i], "AUTH", a.service)
		}
		manifests += annotated(name, name+".example", "web", annotations...)
	}
	return start(t, manifests, "configmap default/global"), a
}

func letIn(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-User", "alice")
	w.Header().Add("Set-Cookie", "a=1")
	w.Header().Add("Set-Cookie", "b=2")
}

// answers replaces the handler of the service, and clears the stored requests.
func (a *authService) answers(answer http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer, a.asked, a.seen = answer, nil, nil
}

// taken returns the requests that the service and the backend received.
func (a *authService) taken() (asked, seen []*http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked, a.seen
}

// TestExternalAuthAllows checks the requests that the authentication service and the backend get for an allowed
// request with a body.
func TestExternalAuthAllows(t *testing.T) {
	in, a := externalAuth(t, map[string][]string{"in": {
		"auth-url", "AUTH/check?u=$escaped_request_uri", "auth-response-headers", "X-User,X-Groups",
		"rewrite-target", "/new",
	}})
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		a.answers(letIn)
		got := in.sendBy(in.client, in.origin("in.example")+"/some?x=1", http.MethodPost, strings.NewReader("body"),
			"X-User: mallory", "x_user: mallory", "X-GROUPS: admins", "Authorization: Bearer token", "X-Sent-From: me",
			"X-Original-Url: http://no")
		if got.status != http.StatusOK || got.body != "web body" ||
			strings.Join(got.header["Set-Cookie"], "|") != "a=1|b=2" {
			t.Fatalf("%+v", got)
		}
		asked, seen := a.taken()
		if len(asked) != 1 || len(seen) != 1 {
			t.Fatalf("asked %d times, and the backend got %d", len(asked), len(seen))
		}
		q, b := asked[0], seen[0]
		in.checkQuestion(q, b)
		if b.URL.Path != "/new" || strings.Join(b.Header["X-User"], "|") != "alice" || b.Header["X-Groups"] != nil ||
			b.Header["X_user"] != nil {
			t.Errorf("the backend gets %s %v", b.URL.Path, b.Header)
		}
		if missing := in.get("in.example", "/missing"); missing.status != http.StatusOK {
			t.Errorf("%+v", missing)
		}
	})
}

// checkQuestion checks the service's request q against b, the request that the backend got.
func (in *ingress) checkQuestion(q, b *http.Request) {
	in.Helper()
	for name, want := range map[string]string{
		"X-Original-Url": in.origin("in.example") + "/some?x=1", "X-Original-Method": "POST",
		"X-Sent-From":             "nginx-ingress-controller",
		"X-Auth-Request-Redirect": "/some?x=1", "X-Real-Ip": "127.0.0.1", "X-Forwarded-For": "127.0.0.1",
		"Authorization":     "Bearer token",
		"X-Forwarded-Proto": "", "X-User": "mallory", "X-Request-Id": b.Header.Get("X-Request-Id"),
		"Content-Length": "",
	} {
		if found := strings.Join(q.Header[name], "|"); found != want {
			in.Errorf("the service gets %s: %q, want %q", name, found, want)
		}
	}
	if q.Method != http.MethodGet || q.RequestURI != "/check?u=%2Fsome%3Fx%3D1" || q.ContentLength != 0 ||
		q.Host != "127.0.0.1" {
		in.Errorf("the service gets %s %s, host %s, with a body of %d", q.Method, q.RequestURI, q.Host, q.ContentLength)
	}
}

// TestExternalAuthRefuses checks that a rejected request gets the service's status, any other failure results in 500,
// and the backend gets no request.
func TestExternalAuthRefuses(t *testing.T) {
	in, a := externalAuth(t, map[string][]string{
		"plain":  {"auth-url", "AUTH", "auth-signin", ""},
		"always": {"auth-url", "AUTH", "auth-always-set-cookie", "true"},
		"signin": {"auth-url", "AUTH", "auth-signin", "https://$host/login"},
		"param":  {"auth-url", "AUTH", "auth-signin", "/login?x=$arg_a", "auth-signin-redirect-param", "to"},
		"own":    {"auth-url", "AUTH", "auth-signin", "https://a.example/?rd=there"},
	})
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		back := in.either("http", "https")
		for _, c := range []struct {
			host           string
			service, want  int
			location, keep string
		}{
			{"plain", 401, 401, "", ""}, {"plain", 403, 403, "", ""}, {"always", 401, 401, "", "c=1"},
			{"plain", 302, 500, "", ""}, {"plain", 500, 500, "", ""},
			{"signin", 401, 302, "https://signin.example/login?rd=" + back + "://signin.example%2Fa%2520b%3Fa%3D1%26b",
				"c=1"},
			{"signin", 403, 403, "", ""},
			{"param", 401, 302, "/login?x=1&to=" + back + "://param.example%2Fa%2520b%3Fa%3D1%26b", "c=1"},
			{"own", 401, 302, "https://a.example/?rd=there", "c=1"},
		} {
			a.answers(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://elsewhere.example/")
				w.Header().Set("Set-Cookie", "c=1")
				w.Header().Set("WWW-Authenticate", "Bearer")
				w.WriteHeader(c.service)
			})
			got := in.get(c.host+".example", "/a%20b?a=1&b")
			challenge := map[bool]string{true: "Bearer"}[c.want == 401]
			if got.status != c.want || got.header.Get("Location") != c.location ||
				got.header.Get("Set-Cookie") != c.keep || got.header.Get("WWW-Authenticate") != challenge {
				t.Errorf("%s with %d: %d %v, want %d %q", c.host, c.service, got.status, got.header, c.want, c.location)
			}
			if asked, seen := a.taken(); len(asked) != 1 || len(seen) != 0 {
				t.Errorf("%s with %d: asked %d times, and the backend got %d", c.host, c.service, len(asked), len(seen))
			}
		}
	})
}

// TestExternalAuthBehindItself checks that the service may be served by the same controller, as with
// https://$host/oauth2/auth, and that a service that requires its own permission does not cause an endless loop.
func TestExternalAuthBehindItself(t *testing.T) {
	_, a := externalAuth(t, nil)
	ip, port, err := net.SplitHostPort(strings.TrimPrefix(a.service, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	objects := class + service("auth", port, ip)
	in := start(t, objects)
	_, own, err := net.SplitHostPort(in.http)
	if err != nil {
		t.Fatal(err)
	}
	in.write("manifests.yaml", objects+rule("auth", "localhost", "Prefix", "/oauth2", "auth")+
		annotated("in", "localhost", "auth", "auth-url", "http://$host:"+own+"/oauth2/auth")+
		annotated("other", "other.example", "auth", "auth-url", "http://localhost:"+own+"/oauth2/auth")+
		annotate(rule("ring", "localhost", "Prefix", "/ring", "auth"), "auth-url", "http://$host:"+own+"/ring")+
		annotate(rule("kept", "localhost", "Prefix", "/kept", "auth"), "auth-url", "http://$host:"+own+"/kept",
			"auth-cache-key", "one",
			"proxy-read-timeout", "600")+
		annotate(rule("hidden", "localhost", "Prefix", "/hidden", "auth"), "auth-url", "http://$host:"+own+"/hidden",
			"auth-proxy-set-headers", "hides")+
		configMap("hides", "cdn-loop: none"))
	in.eventually("a request is let in by a service behind its host", func() error {
		if got := in.get("localhost", "/"); got.status != http.StatusOK {
			return fmt.Errorf("it gets %d", got.status)
		}
		return nil
	})
	if got := in.get("other.example", "/"); got.status != http.StatusInternalServerError {
		t.Errorf("a service behind the host of somebody else lets in: %d", got.status)
	}
	for _, ring := range []string{"/ring", "/kept", "/hidden"} {
		before := in.answered()
		if got := in.get("localhost", ring); got.status != http.StatusInternalServerError {
			t.Errorf("a service that asks itself leads to %d", got.status)
		}
		if rounds := in.answered() - before; rounds > 12 {
			t.Errorf("%s goes round %v times", ring, rounds)
		}
	}
}

// answered returns the number of requests that got a response.
func (in *ingress) answered() (n float64) {
	in.Helper()
	for line := range strings.Lines(in.metrics()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok &&
			strings.HasPrefix(name, "k8singress_http_requests_total{") {
			more, err := strconv.ParseFloat(value, 64)
			if err != nil {
				in.Fatal(err)
			}
			n += more
		}
	}
	return n
}
