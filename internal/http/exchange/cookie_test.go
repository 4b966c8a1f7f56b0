package exchange_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// withSessions returns a backend with four endpoints and a session cookie.
func withSessions(id string, cookie ir.SessionCookie) *balancer.Backend {
	b := balancer.New(id)
	b.SetPolicy(&ir.LoadBalancing{SessionCookie: &cookie})
	b.SetEndpoints([]ir.Endpoint{{Address: "a:1"}, {Address: "b:1"}, {Address: "c:1"}, {Address: "d:1"}})
	return b
}

const (
	chrome60 = " | User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) " +
		"Chrome/60.0.3112.90 Safari/537.36"
	chrome80 = " | User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) " +
		"Chrome/80.0.3987.149 Safari/537.36"
)

// TestSessionCookie checks the attributes of session cookies, and which responses have none.
func TestSessionCookie(t *testing.T) {
	own := []string{exchangetest.Ingress, "Ingress/shop/other"}
	const plain = "GET http://shop.example/cart/7"
	for name, c := range map[string]struct {
		cookie  ir.SessionCookie
		request string
		// want are the attributes of the cookie. If it is empty, the response has none.
		want string
	}{
		"plain":  {ir.SessionCookie{Origins: own}, plain, "; Path=/cart; HttpOnly"},
		"https":  {ir.SessionCookie{Origins: own}, "GET https://shop.example/", "; Path=/cart; HttpOnly; Secure"},
		"secure": {ir.SessionCookie{Origins: own, Secure: true}, plain, "; Path=/cart; HttpOnly; Secure"},
		"path":   {ir.SessionCookie{Origins: own, Path: "/other"}, plain, "; Path=/other; HttpOnly"},
		"domain": {ir.SessionCookie{Origins: own, Domain: "example.com"}, plain,
			"; Path=/cart; Domain=example.com; HttpOnly"},
		"age": {ir.SessionCookie{Origins: own, MaxAge: time.Hour}, plain, "; Path=/cart; Max-Age=3600; HttpOnly"},
		"expires": {ir.SessionCookie{Origins: own, Expires: time.Hour}, plain,
			"; Path=/cart; Expires=Sat, 01 Jan 2000 01:00:00 GMT; HttpOnly"},
		"lax": {ir.SessionCookie{Origins: own, SameSite: "Lax"}, plain, "; Path=/cart; HttpOnly; SameSite=Lax"},
		"strict": {ir.SessionCookie{Origins: own, SameSite: "STRICT"}, plain,
			"; Path=/cart; HttpOnly; SameSite=Strict"},
		"unknown": {ir.SessionCookie{Origins: own, SameSite: "other"}, plain, "; Path=/cart; HttpOnly"},
		"none": {ir.SessionCookie{Origins: own, SameSite: "None"}, plain + chrome60,
			"; Path=/cart; HttpOnly; SameSite=None"},
		"none for a new browser": {ir.SessionCookie{Origins: own, SameSite: "None", OmitSameSiteNone: true},
			plain + chrome80, "; Path=/cart; HttpOnly; SameSite=None"},
		"none for an old browser": {ir.SessionCookie{Origins: own, SameSite: "None", OmitSameSiteNone: true},
			plain + chrome60, "; Path=/cart; HttpOnly"},
		"injection": {ir.SessionCookie{Origins: own, Path: "/x; Domain=evil.example\r\nA: b"}, plain,
			"; Path=/x Domain=evil.exampleA: b; HttpOnly"},
		"of another Ingress": {ir.SessionCookie{Origins: own[1:]}, plain, ""},
		"with a bad name":    {ir.SessionCookie{Origins: own, Name: "a b"}, plain, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.cookie.Name == "" {
					c.cookie.Name = "session"
				}
				x, response := exchangetest.New(t, c.request)
				x.Route.Path, x.Backend = "/cart", withSessions("shop/web/80", c.cookie)
				x.Next()
				if err := x.Head(exchangetest.Response(t, "200 | Set-Cookie: own=1")); err != nil {
					t.Fatal(err)
				}
				line, _ := strings.CutPrefix(response.String(), "200 | Set-Cookie: own=1")
				value, attributes, _ := strings.Cut(line, ";")
				if c.want == "" && line == "" {
					return
				}
				if got := ";" + attributes; got != c.want {
					t.Errorf("the attributes are %q, want %q", got, c.want)
				}
				key, tag, ok := strings.Cut(strings.TrimPrefix(value, " | Set-Cookie: session="), "|")
				if !ok || key == "" || tag == "" || strings.Contains(value, ":1") {
					t.Errorf("the cookie is %q", value)
				}
			})
		})
	}
}

// cookieOf returns the session cookie of a response as a header field of a request. It is empty if the response has
// none.
func cookieOf(t *testing.T, response *exchangetest.Recorder) string {
	t.Helper()
	_, line, ok := strings.Cut(response.String(), "Set-Cookie: ")
	if !ok {
		return ""
	}
	cookie, err := http.ParseSetCookie(line)
	if err != nil {
		t.Fatal(err)
	}
	return " | Cookie: " + cookie.Name + "=" + cookie.Value
}

// TestSessionOfAnotherRoute checks that a route uses the session cookie that another route has set.
func TestSessionOfAnotherRoute(t *testing.T) {
	b := withSessions("shop/web/80", ir.SessionCookie{Name: "session", Origins: []string{exchangetest.Ingress}})
	send := func(fields, origin string) (address, cookie string) {
		x, response := exchangetest.New(t, "GET http://shop.example/"+fields)
		x.Backend, x.Route.Origin = b, origin
		address, _ = x.Next()
		if err := x.Head(exchangetest.Response(t, "200")); err != nil {
			t.Fatal(err)
		}
		return address, cookieOf(t, response)
	}
	first, cookie := send("", exchangetest.Ingress)
	for range 10 {
		for _, origin := range []string{exchangetest.Ingress, "Ingress/shop/other"} {
			if address, again := send(cookie, origin); address != first || again != "" {
				t.Fatalf("the client of %s goes to %s with %s, and gets %q", first, address, origin, again)
			}
		}
	}
}

// TestOneSessionCookie checks that a request with several attempts sets only the cookie of the last one.
func TestOneSessionCookie(t *testing.T) {
	b := withSessions("shop/web/80", ir.SessionCookie{Name: "session", Origins: []string{exchangetest.Ingress},
		ChangeOnFailure: true})
	send := func(fields string, attempts int) (address string, response *exchangetest.Recorder) {
		var x *exchange.Exchange
		x, response = exchangetest.New(t, "GET http://shop.example/"+fields)
		x.Backend = b
		for range attempts {
			address, _ = x.Next()
		}
		if err := x.Head(exchangetest.Response(t, "200")); err != nil {
			t.Fatal(err)
		}
		return address, response
	}
	last, response := send("", 3)
	if n := strings.Count(response.String(), "Set-Cookie"); n != 1 {
		t.Fatalf("the client gets %q", response)
	}
	if address, _ := send(cookieOf(t, response), 1); address != last {
		t.Errorf("the client goes to %s, and the cookie is for %s", address, last)
	}
}
