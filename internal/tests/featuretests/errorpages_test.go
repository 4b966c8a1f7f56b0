package featuretests

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// erring starts an endpoint that responds to a path such as /404 with that status, and to other paths with 200.
func erring(t *testing.T) (ip, port string) {
	t.Helper()
	return endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		status, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			status = http.StatusOK
		}
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Basic realm="app"`)
		}
		w.Header().Set("X-App", "app")
		w.WriteHeader(status)
		fmt.Fprintf(w, "app %d", status)
	})
}

// errorPages starts an endpoint that responds with the headers that describe an error. status computes its response
// status from the error's.
func errorPages(t *testing.T, status func(code int) int) (ip, port string) {
	t.Helper()
	return endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.Header.Get("X-Code"))
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Page", strings.Join([]string{
			r.Method, r.URL.RequestURI(), r.Header.Get("X-Code"), r.Header.Get("X-Format"),
			r.Header.Get("X-Original-Uri"),
			r.Header.Get("X-Namespace"),
			r.Header.Get("X-Ingress-Name"), r.Header.Get("X-Service-Name"), r.Header.Get("X-Service-Port"),
			r.Header.Get("X-Request-Id"),
			r.Host, r.Header.Get("If-None-Match"), string(body),
		}, " "))
		w.WriteHeader(status(code))
		fmt.Fprintf(w, "page of %d", code)
	})
}

func sameStatus(code int) int { return code }
func fine(int) int            { return http.StatusOK }

// withErrorPages serves hosts with several kinds of error pages.
func withErrorPages(t *testing.T, more string, options ...string) *ingress {
	t.Helper()
	ip, port := erring(t)
	_, pages := errorPages(t, sameStatus)
	_, lax := errorPages(t, fine)
	_, bad := endpointOf(t, garbage)
	_, nobody, err := net.SplitHostPort(fixture.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	return start(t, class+service("app", port, ip)+service("none", "1")+service("pages", pages, ip)+
		service("lax", lax, ip)+
		service("away", nobody, ip)+service("garbage", bad, ip)+
		annotated("a", "a.example", "app", "custom-http-errors", "404,401,413,500", "default-backend", "pages",
			"enable-cors", "true",
			"proxy-body-size", "10")+
		annotated("lax", "lax.example", "app", "custom-http-errors", "404", "default-backend", "lax")+
		annotated("guarded", "guarded.example", "app", "custom-http-errors", "403,404", "default-backend", "lax",
			"denylist-source-range",
			"0.0.0.0/0,::/0")+
		annotated("gone", "gone.example", "none", "default-backend", "pages")+
		annotated("own", "own.example", "app", "custom-http-errors", "404,413", "default-backend", "pages",
			"disable-proxy-intercept-errors", "true",
			"proxy-body-size", "10")+
		annotated("away", "away.example", "app", "custom-http-errors", "404", "default-backend", "away")+
		annotated("garbage", "garbage.example", "app", "custom-http-errors", "404", "default-backend", "garbage")+
		annotated("missing", "missing.example", "app", "custom-http-errors", "404", "default-backend", "nowhere")+
		annotated("without", "without.example", "none", "custom-http-errors", "503,404")+
		rule("plain", "plain.example", "Prefix", "/", "app")+more, options...)
}

// TestErrorPages checks that clients get the error page instead of the error, in each version of HTTP. The status is
// the page's, except if access was denied.
func TestErrorPages(t *testing.T) {
	in := withErrorPages(t, "")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, c := range []struct {
			method, host, path, body string
			status                   int
			want, page               string
		}{
			{"GET", "a.example", "/404?x=y", "", 404, "page of 404",
				"GET / 404 text/html /404?x=y default a app 80 me a.example"},
			{"POST", "a.example", "/404", "short", 404, "page of 404",
				"POST / 404 text/html /404 default a app 80 me a.example"},
			{"HEAD", "a.example", "/500", "", 500, "", "HEAD / 500 text/html /500 default a app 80 me a.example"},
			{"POST", "a.example", "/", "longer than ten bytes", 413, "page of 413",
				"POST / 413 text/html / default a app 80 me a.example"},
			{"GET", "a.example", "/401", "", 401, "page of 401",
				"GET / 401 text/html /401 default a app 80 me a.example"},
			{"GET", "a.example", "/403", "", 403, "app 403", ""},
			{"GET", "a.example", "/", "", 200, "app 200", ""},
			{"GET", "lax.example", "/404", "", 200, "page of 404",
				"GET / 404 text/html /404 default lax app 80 me lax.example"},
			{"GET", "guarded.example", "/404", "", 403, "page of 403",
				"GET / 403 text/html /404 default guarded app 80 me guarded.example"},
			{"GET", "gone.example", "/x?y", "", 503, "page of 503",
				"GET /x?y 503 text/html /x?y default gone none 80 me gone.example"},
			{"GET", "own.example", "/404", "", 404, "app 404", ""},
			{"POST", "own.example", "/", "longer than ten bytes", 413, "page of 413",
				"POST / 413 text/html / default own app 80 me own.example"},
			{"GET", "away.example", "/404", "", 404, "", ""},
			{"GET", "garbage.example", "/404", "", 404, "", ""},
			{"GET", "missing.example", "/404", "", 404, "app 404", ""},
			{"GET", "without.example", "/404", "", 503, "", ""},
			{"GET", "plain.example", "/404", "", 404, "app 404", ""},
			{"GET", "unknown.example", "/404", "", 404, "", ""},
		} {
			var body io.Reader
			if c.body != "" {
				body = strings.NewReader(c.body)
			}
			got := in.sendBy(in.client, in.origin(c.host)+c.path, c.method, body,
				"Accept: text/html", "X-Request-Id: me", "X-Code: 418", "If-None-Match: old",
				"Origin: https://b.example")
			if got.status != c.status || got.body != c.want || got.header.Get("X-Page") != c.page {
				t.Errorf("%s %s%s: %d %q, and the page has been told %q", c.method, c.host, c.path, got.status,
					got.body, got.header.Get("X-Page"))
			}
			if cors := got.header.Get("Access-Control-Allow-Origin"); (cors == "*") != (c.host == "a.example") {
				t.Errorf("%s %s%s: Access-Control-Allow-Origin is %q", c.method, c.host, c.path, cors)
			}
			if c.status == 401 && got.header.Get("WWW-Authenticate") != `Basic realm="app"` {
				t.Errorf("the client is not told how to log in: %v", got.header)
			}
		}
	})
	for ingress, want := range map[string]string{
		"missing": "the Service default/nowhere does not exist: the annotation has no effect",
		"without": "the setting has no effect, because no Service provides error pages",
	} {
		if all := in.problems("Ingress/default/" + ingress); len(all) == 0 || !strings.Contains(all[0].Message, want) {
			t.Errorf("%s is told %v, want %q", ingress, all, want)
		}
	}
}

// TestErrorPagesOfLimits checks that a request beyond a limit gets the page of its status, and keeps that status, if
// the Ingress lists it. Otherwise the response is the plain one.
func TestErrorPagesOfLimits(t *testing.T) {
	limited := func(name string, more ...string) string {
		return annotated(name, name+".example", "app",
			append(more, "limit-rpm", "1", "limit-burst-multiplier", "1", "enable-cors", "true")...)
	}
	in := withErrorPages(t, limited("paged", "custom-http-errors", "503", "default-backend", "lax")+
		limited("plainly", "custom-http-errors", "404", "default-backend", "lax"))
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for host, want := range map[string]string{"paged.example": "page of 503", "plainly.example": ""} {
			var got answer
			in.eventually("a limit", func() error {
				got = in.sendBy(in.client, in.origin(host)+"/x", "GET", nil, "Origin: https://b.example")
				if got.status != http.StatusServiceUnavailable {
					return fmt.Errorf("%s answers %d", host, got.status)
				}
				return nil
			})
			if cors := got.header.Get("Access-Control-Allow-Origin"); got.body != want || cors != "*" {
				t.Errorf("%s answers %q, with Access-Control-Allow-Origin %q", host, got.body, cors)
			}
		}
	})
}

// TestDefaultBackend checks that requests that match no host or path go to the default backend unchanged, as do errors
// of Ingresses that name no Service for them. It can be added and removed without a reload.
func TestDefaultBackend(t *testing.T) {
	ip, other := backend(t, "default")
	in := withErrorPages(t, rule("part", "part.example", "Prefix", "/in", "app")+
		global(`custom-http-errors: "404"`),
		"default_backend default/fallback", "configmap default/global")
	in.expect("unknown.example", "/x", 404, "")
	in.expect("plain.example", "/404", 404, "app 404")
	if all := in.messages("Service/default/fallback", "ServiceNotFound"); len(all) != 1 {
		t.Errorf("the missing Service is told %q", all)
	}
	in.write("fallback.yaml", service("fallback", other, ip))
	in.becomes("unknown.example", "/x?y", 200, "default /x?y")
	in.byEachVersion(t, func(_ *testing.T, in *ingress) {
		in.expect("part.example", "/404", 200, "default /404")
		in.expect("part.example", "/in", 200, "app 200")
		in.expect("plain.example", "/404", 200, "default /")
		in.expect("missing.example", "/404", 200, "default /")
		in.expect("without.example", "/", 200, "default /")
		in.expect("a.example", "/404", 404, "page of 404")
		in.expect("away.example", "/404", 404, "")
	})
	in.byHTTP1(t, func(t *testing.T, in *ingress) {
		if got := in.raw("GET /x HTTP/1.0\r\n\r\n"); !slices.Equal(got, []string{"200 default /x"}) {
			t.Errorf("a client without a host gets %q", got)
		}
	})
	in.remove("fallback.yaml")
	in.becomes("unknown.example", "/x", 404, "")
}

// TestReplacedResponses checks that a discarded response does not keep its connection busy, and that the connection is
// reused if the response was complete.
func TestReplacedResponses(t *testing.T) {
	var connections atomic.Int32
	left := make(chan struct{}, 1)
	app := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		if r.URL.Path == "/short" {
			fmt.Fprint(w, "short")
			return
		}
		for _, err := w.Write(bytes.Repeat([]byte("x"), 1<<10)); err == nil; {
			_, err = w.Write(bytes.Repeat([]byte("x"), 1<<10))
		}
		left <- struct{}{}
	}))
	app.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	app.Start()
	t.Cleanup(app.Close)
	ip, port := hostPort(t, app.Listener.Addr())
	_, pages := errorPages(t, sameStatus)
	in := start(t, class+service("app", port, ip)+service("pages", pages, ip)+
		annotated("a", "a.example", "app", "custom-http-errors", "404", "default-backend", "pages"))
	for range 20 {
		in.expect("a.example", "/short", 404, "page of 404")
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("20 requests in turn took %d connections", n)
	}
	in.expect("a.example", "/endless", 404, "page of 404")
	await(t, "the end of the answer that nobody reads", left)
}

// TestErrorPagesOfChains checks that an error of a Caddy handler in front of the endpoints keeps its status, and that
// an error of an endpoint gets its page behind handlers, too.
func TestErrorPagesOfChains(t *testing.T) {
	ip, port := erring(t)
	_, lax := errorPages(t, fine)
	in := startChains(t, class+service("app", port, ip)+service("lax", lax, ip)+
		annotated("staff", "staff.example", "app", "custom-http-errors", "401,404", "default-backend", "lax")+
		annotated("mark", "mark.example", "app", "custom-http-errors", "401,404", "default-backend", "lax"),
		staffOne+"chain mark {\nheader X-Mark mark\nencode\n}\n",
		map[string][]string{"staff.example": {"staff"}, "mark.example": {"mark"}})
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		got := in.get("staff.example", "/404")
		if got.status != 401 || got.body != "page of 401" ||
			!strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Basic") {
			t.Errorf("without a password: %d %q %v", got.status, got.body, got.header)
		}
		in.expect("mark.example", "/404", 200, "page of 404")
		in.expect("mark.example", "/401", 200, "page of 401")
		in.expect("mark.example", "/200", 200, "app 200")
	})
}

// TestErrorPagesKeepStatus checks that an error page with status 200 does not change the status of a request that
// external or basic authentication rejects.
func TestErrorPagesKeepStatus(t *testing.T) {
	hosts := map[string][]string{"auth": {"auth-url", "AUTH", "custom-http-errors", "401,403,404,500",
		"default-backend", "lax"}}
	in, a := externalAuth(t, hosts)
	ip, lax := errorPages(t, fine)
	in.write("lax.yaml", service("lax", lax, ip))
	in.becomes("auth.example", "/missing", 200, "page of 404")
	for _, status := range []int{401, 403, 502} {
		a.mu.Lock()
		a.seen, a.answer = nil, answersWith(status)
		a.mu.Unlock()
		want := status
		if status == 502 {
			want = 500
		}
		in.byEachVersion(t, func(_ *testing.T, in *ingress) {
			in.expect("auth.example", "/", want, fmt.Sprintf("page of %d", want))
		})
		a.mu.Lock()
		if len(a.seen) > 0 {
			t.Errorf("after a %d of the service, the backend got %d requests", status, len(a.seen))
		}
		a.mu.Unlock()
	}
}
