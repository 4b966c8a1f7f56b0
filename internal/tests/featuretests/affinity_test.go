package featuretests

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// visitor is a client that may have a session cookie.
type visitor struct {
	cookie, home string
}

const cookieName = "INGRESSCOOKIE"

// visit sends a request as a visitor, and stores the cookie of the response, if there is one.
func (in *ingress) visit(v *visitor) (endpoint string, set bool) {
	in.Helper()
	var headers []string
	if v.cookie != "" {
		headers = []string{"Cookie", v.cookie}
	}
	got := in.askWith(in.client, "/", headers...)
	lines := got.header.Values("Set-Cookie")
	if len(lines) > 1 {
		in.Errorf("several cookies: %v", lines)
	}
	for _, line := range lines {
		v.cookie, _, _ = strings.Cut(line, ";")
		set = true
	}
	return got.body, set
}

// visitors returns n clients that each sent their first request.
func (in *ingress) visitors(n int) []*visitor {
	in.Helper()
	var all []*visitor
	for range n {
		v := &visitor{}
		home, set := in.visit(v)
		if !set {
			in.Fatal("a new client gets no cookie")
		}
		v.home = home
		all = append(all, v)
	}
	return all
}

// TestSessionCookie checks that the cookie is set once, and that later requests go to its endpoint.
func TestSessionCookie(t *testing.T) {
	for _, mode := range []string{"balanced", "persistent"} {
		t.Run(mode, func(t *testing.T) {
			in, _ := fleetOf(t, 3, nil, "affinity", "cookie", "affinity-mode", mode)
			in.byEachVersion(t, func(t *testing.T, in *ingress) {
				used := map[string]bool{}
				for _, v := range in.visitors(40) {
					used[v.home] = true
					for range 5 {
						if now, set := in.visit(v); now != v.home || set {
							t.Fatalf("a client of %s is sent to %s; another cookie: %t", v.home, now, set)
						}
					}
				}
				if len(used) != 3 {
					t.Errorf("40 clients are on %v", used)
				}
				// Values that the controller did not set are no sessions.
				for _, cookie := range []string{"x", "x|y", "|", strings.Repeat("a", 4000), "127.0.3.1:80|", "a|b|c"} {
					if _, set := in.visit(&visitor{cookie: cookieName + "=" + cookie}); !set {
						t.Errorf("the cookie %.20q counts", cookie)
					}
				}
			})
		})
	}
}

// attributes maps annotations to the attributes that follow the cookie's value, over HTTP and over HTTPS.
var attributes = map[string]struct {
	annotations  []string
	http, secure string
}{
	"none": {nil, "INGRESSCOOKIE=; Path=/app; HttpOnly", "INGRESSCOOKIE=; Path=/app; HttpOnly; Secure"},
	"all": {[]string{
		"session-cookie-name", "route", "session-cookie-path", "/other", "session-cookie-domain", "shop.example",
		"session-cookie-max-age", "3600", "session-cookie-samesite", "Lax", "session-cookie-secure", "true",
	}, "route=; Path=/other; Domain=shop.example; Max-Age=3600; HttpOnly; Secure; SameSite=Lax", ""},
	"samesite none": {
		[]string{"session-cookie-samesite", "None"}, "INGRESSCOOKIE=; Path=/app; HttpOnly; SameSite=None",
		"INGRESSCOOKIE=; Path=/app; HttpOnly; Secure; SameSite=None",
	},
	"strict": {[]string{"session-cookie-samesite", "strict"},
		"INGRESSCOOKIE=; Path=/app; HttpOnly; SameSite=Strict", ""},
	"bad name":    {[]string{"session-cookie-name", "a b"}, "INGRESSCOOKIE=; Path=/app; HttpOnly", ""},
	"placeholder": {[]string{"session-cookie-path", "/{env.PATH}"}, "INGRESSCOOKIE=; Path=/{env.PATH}; HttpOnly", ""},
}

func TestSessionCookieAttributes(t *testing.T) {
	f := newFleet(t, 2, nil)
	var manifests strings.Builder
	manifests.WriteString(class)
	for name, c := range attributes {
		name = strings.ReplaceAll(name, " ", "-")
		manifests.WriteString(service(name, f.port, f.ips(0, 2)...) +
			annotate(rule(name, name+".example", "Prefix", "/app", name),
				append([]string{"affinity", "cookie"}, c.annotations...)...))
	}
	in := start(t, manifests.String())
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	secure := &http.Client{Transport: transport, Timeout: deadline}
	for name, c := range attributes {
		host := strings.ReplaceAll(name, " ", "-") + ".example"
		if got := withoutValue(in.get(host, "/app/x").header.Get("Set-Cookie")); got != c.http {
			t.Errorf("%s: %s, want %s", name, got, c.http)
		}
		if c.secure == "" {
			continue
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+in.https+"/app/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		response, err := secure.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if got := withoutValue(read(t, response).header.Get("Set-Cookie")); got != c.secure {
			t.Errorf("%s, over HTTPS: %s, want %s", name, got, c.secure)
		}
	}
}

// TestSessionCookieExpires checks that Expires is the time of the response plus the configured seconds.
func TestSessionCookieExpires(t *testing.T) {
	in, _ := fleetOf(t, 2, nil, "affinity", "cookie", "session-cookie-expires", "172800")
	header := http.Header{"Set-Cookie": in.get("shop.example", "/").header.Values("Set-Cookie")}
	cookies := (&http.Response{Header: header}).Cookies()
	if len(cookies) != 1 {
		t.Fatal(header)
	}
	date, err := http.ParseTime(in.get("shop.example", "/").header.Get("Date"))
	if err != nil {
		t.Fatal(err)
	}
	if late := cookies[0].Expires.Sub(date); late.Hours() < 47.9 || late.Hours() > 48.1 {
		t.Errorf("it expires after %s", late)
	}
}

func withoutValue(cookie string) string {
	name, rest, _ := strings.Cut(cookie, "=")
	if _, rest, _ = strings.Cut(rest, ";"); rest != "" {
		rest = ";" + rest
	}
	return name + "=" + rest
}

// TestSessionsWhenEndpointsChange checks which clients move when endpoints change. When endpoints are added, some
// clients move to them with "balanced", and none with "persistent". When an endpoint is removed, its clients move to
// another one permanently, and no other client moves.
func TestSessionsWhenEndpointsChange(t *testing.T) {
	for _, mode := range []string{"balanced", "persistent"} {
		t.Run(mode, func(t *testing.T) {
			f := newFleet(t, 4, nil)
			with := func(first, behind int) string {
				return class + service("web", f.port, f.ips(first, behind)...) +
					annotated("web", "shop.example", "web", "affinity", "cookie", "affinity-mode", mode)
			}
			in := start(t, with(0, 2))
			all := in.visitors(40)
			in.write("manifests.yaml", with(0, 4))
			in.eventually("the new endpoints", func() error {
				for _, v := range in.visitors(8) {
					if v.home == f.ip(2) || v.home == f.ip(3) {
						return nil
					}
				}
				return errors.New("no new client is there")
			})
			if moved := in.moved(all); (mode == "persistent") != (moved == 0) || moved == len(all) {
				t.Errorf("%d of %d clients have moved", moved, len(all))
			}

			in.write("manifests.yaml", with(1, 4))
			in.gone(f.ip(0), func() string { return in.again(all, f.ip(0)) })
			for _, v := range all {
				first, _ := in.visit(v)
				second, set := in.visit(v)
				if v.home != f.ip(0) && first != v.home || first == f.ip(0) || second != first || set {
					t.Errorf("a client of %s is sent to %s and then to %s", v.home, first, second)
				}
			}
		})
	}
}

// moved returns the number of clients that now reach another endpoint. Their own endpoint still exists, so none of
// them gets another cookie.
func (in *ingress) moved(all []*visitor) int {
	in.Helper()
	moved := 0
	for _, v := range all {
		now, set := in.visit(v)
		if set {
			in.Error("a client gets another cookie although its endpoint is there")
		}
		if now != v.home {
			moved++
		}
		v.home = now
	}
	return moved
}

// again sends a request as one of the clients of an endpoint, which drops any cookie of the response.
func (in *ingress) again(all []*visitor, home string) string {
	in.Helper()
	for _, v := range all {
		if v.home == home {
			copied := *v
			now, _ := in.visit(&copied)
			return now
		}
	}
	in.Fatalf("%s has no clients", home)
	return ""
}

// TestSessionWhenItsEndpointFails checks that a client moves to another endpoint permanently with change-on-failure,
// and returns to its endpoint without it.
func TestSessionWhenItsEndpointFails(t *testing.T) {
	for _, mode := range []string{"balanced", "persistent"} {
		for _, change := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, " ", change), func(t *testing.T) {
				in, f := fleetOf(t, 3, nil, "affinity", "cookie", "affinity-mode", mode,
					"session-cookie-change-on-failure", fmt.Sprint(change))
				v := in.visitors(1)[0]
				f.down(v.home)
				now, set := in.visit(v)
				if now == v.home || set != change {
					t.Errorf("its endpoint %s is down: %s answers; another cookie: %t", v.home, now, set)
				}
				f.up(v.home)
				back, set := in.visit(v)
				if want := map[bool]string{false: v.home, true: now}[change]; back != want || set {
					t.Errorf("it is up again: %s answers, want %s; another cookie: %t", back, want, set)
				}
			})
		}
	}
}

// TestSessionCookieIsOfItsIngress checks that an Ingress without the affinity annotations honors the cookie, but never
// sets it.
func TestSessionCookieIsOfItsIngress(t *testing.T) {
	f := newFleet(t, 4, nil)
	in := start(t, class+service("web", f.port, f.ips(0, 4)...)+
		annotate(rule("sticky", "shop.example", "Prefix", "/app", "web"), "affinity", "cookie")+rule("plain",
		"shop.example", "Prefix", "/", "web"))
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		used := map[string]bool{}
		for range 20 {
			got := in.askWith(in.client, "/plain")
			if used[got.body] = true; got.header.Get("Set-Cookie") != "" {
				t.Fatal("a path of the other Ingress sets the cookie")
			}
		}
		if len(used) < 2 {
			t.Errorf("without a cookie, all requests go to %v", used)
		}
		got := in.askWith(in.client, "/app")
		cookie, _, _ := strings.Cut(got.header.Get("Set-Cookie"), ";")
		for range 10 {
			if now := in.ask("/plain", "Cookie", cookie); now != got.body {
				t.Fatalf("a path of the other Ingress leads to %s, and the session is on %s", now, got.body)
			}
		}
	})
}

// TestConditionalSameSite checks that with the annotation, only old browsers that drop cookies with SameSite=None get
// a cookie without SameSite.
func TestConditionalSameSite(t *testing.T) {
	f := newFleet(t, 1, nil)
	in := start(t, class+service("web", f.port, f.ip(0))+service("other", f.port, f.ip(0))+
		annotated("always", "always.example", "other", "affinity", "cookie", "session-cookie-samesite", "None")+
		annotated("new", "new.example", "web", "affinity", "cookie", "session-cookie-samesite", "None",
			"session-cookie-conditional-samesite-none", "true"))
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, c := range []struct {
			host, browser string
			none          bool
		}{
			{"always.example", "Chrome/60.0.3112.113", true}, {"always.example", "Chrome/124.0.0.0", true},
			{"new.example", "Chrome/60.0.3112.113", false}, {"new.example", "Chrome/124.0.0.0", true},
		} {
			agent := "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) " + c.browser +
				" Safari/537.36"
			got := in.sendBy(in.client, in.origin(c.host)+"/", http.MethodGet, nil, agent).header.Get("Set-Cookie")
			if none := strings.Contains(got, "SameSite=None"); got == "" || none != c.none {
				t.Errorf("%s gets %q of %s", c.browser, got, c.host)
			}
		}
	})
}
