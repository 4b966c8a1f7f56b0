package live_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
)

func withCookie(change func(*ir.SessionCookie)) *ir.LoadBalancing {
	c := &ir.SessionCookie{Name: "INGRESSCOOKIE", Origins: []string{ingress}}
	if change != nil {
		change(c)
	}
	return &ir.LoadBalancing{SessionCookie: c}
}

func next(r *exchange.Exchange) error {
	r.Next()
	return nil
}

const (
	chrome60 = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/60.0.3112.90 " +
		"Safari/537.36"
	chrome80 = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/80.0.3987.149 " +
		"Safari/537.36"
)

func TestSessionCookie(t *testing.T) {
	overTLS := func(r *http.Request) { r.TLS = &tls.ConnectionState{HandshakeComplete: true} }
	from := func(agent string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("User-Agent", agent) }
	}
	none := func(c *ir.SessionCookie) { c.SameSite, c.OmitSameSiteNone = "None", true }
	for name, c := range map[string]struct {
		cookie  func(*ir.SessionCookie)
		request func(*http.Request)
		want    string
	}{
		"plain":  {nil, nil, "; Path=/cart; HttpOnly"},
		"https":  {nil, overTLS, "; Path=/cart; HttpOnly; Secure"},
		"secure": {func(c *ir.SessionCookie) { c.Secure = true }, nil, "; Path=/cart; HttpOnly; Secure"},
		"path":   {func(c *ir.SessionCookie) { c.Path = "/other" }, nil, "; Path=/other; HttpOnly"},
		"domain": {func(c *ir.SessionCookie) { c.Domain = "example.com" }, nil,
			"; Path=/cart; Domain=example.com; HttpOnly"},
		"age":    {func(c *ir.SessionCookie) { c.MaxAge = time.Hour }, nil, "; Path=/cart; Max-Age=3600; HttpOnly"},
		"lax":    {func(c *ir.SessionCookie) { c.SameSite = "Lax" }, nil, "; Path=/cart; HttpOnly; SameSite=Lax"},
		"strict": {func(c *ir.SessionCookie) { c.SameSite = "Strict" }, nil, "; Path=/cart; HttpOnly; SameSite=Strict"},
		"none": {func(c *ir.SessionCookie) { c.SameSite = "None" }, from(chrome60),
			"; Path=/cart; HttpOnly; SameSite=None"},
		"new": {none, from(chrome80), "; Path=/cart; HttpOnly; SameSite=None"},
		"old": {none, from(chrome60), "; Path=/cart; HttpOnly"},
		"inject": {func(c *ir.SessionCookie) { c.Path = "/x; Domain=evil.example\r\nA: b" }, nil,
			"; Path=/x Domain=evil.exampleA: b; HttpOnly"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, withCookie(c.cookie), "a:1", "b:1")
			response, _ := s.visit(c.request, next)
			name, rest, _ := strings.Cut(response.Header.Get("Set-Cookie"), "=")
			value, attributes, _ := strings.Cut(rest, ";")
			if got := ";" + attributes; name != "INGRESSCOOKIE" || got != c.want {
				t.Errorf("%s: attributes %q, want %q", name, got, c.want)
			}
			if key, tag, ok := strings.Cut(value, "|"); !ok || key == "" || tag == "" ||
				strings.Contains(value, "a:1") {
				t.Errorf("the value is %q", value)
			}
		})
	}
}

func TestSessionCookieExpires(t *testing.T) {
	s := newShop(t, withCookie(func(c *ir.SessionCookie) { c.Expires = time.Hour }), "a:1")
	response, _ := s.visit(nil, next)
	if left := time.Until(response.Cookies()[0].Expires); left < 50*time.Minute || left > time.Hour {
		t.Errorf("it expires in %v, want an hour", left)
	}
}

func TestNoSessionCookie(t *testing.T) {
	for name, lb := range map[string]*ir.LoadBalancing{
		"another Ingress asks for it": withCookie(
			func(c *ir.SessionCookie) { c.Origins = []string{"Ingress/shop/back"} }),
		"its name is none": withCookie(func(c *ir.SessionCookie) { c.Name = "a b" }),
		"round robin":      nil,
	} {
		response, _ := newShop(t, lb, "a:1", "b:1").visit(nil, next)
		if got := response.Header.Values("Set-Cookie"); len(got) != 0 {
			t.Errorf("%s, and there is %q", name, got)
		}
	}
}

// TestSessionOfAnotherRoute checks that a route uses the session cookie that another route has set.
func TestSessionOfAnotherRoute(t *testing.T) {
	s := newShop(t, withCookie(nil), "a:1", "b:1", "c:1", "d:1")
	var own string
	remember := func(r *exchange.Exchange) error {
		own, _ = r.Next()
		return nil
	}
	response, _ := s.visit(nil, remember)
	cookie := response.Cookies()[0]
	s.backends.Configure(backendID, withCookie(func(c *ir.SessionCookie) { c.Origins = nil }))
	for range 10 {
		first := own
		response, _ = s.visit(func(r *http.Request) { r.AddCookie(cookie) }, remember)
		if own != first || len(response.Header.Values("Set-Cookie")) != 0 {
			t.Fatalf("the client goes from %s to %s and gets %q", first, own, response.Header.Values("Set-Cookie"))
		}
	}
}

// TestOneSessionCookie checks that a request with several attempts sets only the cookie of the last one, and keeps
// other cookies.
func TestOneSessionCookie(t *testing.T) {
	lb := withCookie(func(c *ir.SessionCookie) { c.ChangeOnFailure = true })
	s := newShop(t, lb, "a:1", "b:1", "c:1")
	var own string
	response, _ := s.visit(nil, func(r *exchange.Exchange) error {
		for range 3 {
			own, _ = r.Next()
		}
		return nil
	})
	cookies := response.Cookies()
	if len(cookies) != 1 {
		t.Fatalf("cookies are %q", response.Header.Values("Set-Cookie"))
	}
	_, _ = s.visit(func(r *http.Request) { r.AddCookie(cookies[0]) }, func(r *exchange.Exchange) error {
		if got, _ := r.Next(); got != own {
			t.Errorf("the client goes to %s, and the cookie is for %s", got, own)
		}
		return nil
	})
}
