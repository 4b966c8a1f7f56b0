package callout

import (
	"strings"
	"testing"
)

func lookup(name string) string {
	return map[string]string{
		"host": "shop.example", "http_host": "shop.example:99", "request_uri": "/a?b=c&d", "uri": "/a b\r\nX: y#",
		"http_x": "../?&#\r\n",
		"arg_q":  "%2e%2E/x y", "cookie_c": "a;b", "namespace": "shop",
	}[name]
}

// TestFill checks where calls are sent, and that values from a client cannot end a component of the URL.
func TestFill(t *testing.T) {
	for text, want := range map[string]string{
		"http://auth.shop.svc":                    "auth.shop.svc auth.shop.svc:80 /",
		"https://auth.example/a?b":                "auth.example auth.example:443 /a?b",
		"http://auth:8080?x=1":                    "auth auth:8080 /?x=1",
		"http://[2001:db8::1]:8080/":              "[2001:db8::1] [2001:db8::1]:8080 /",
		"https://$host/check":                     "shop.example shop.example:443 /check",
		"http://$http_host:4180/$namespace":       "shop.example shop.example:4180 /shop",
		"http://auth.${namespace}.svc/":           "auth.shop.svc auth.shop.svc:80 /",
		"http://mirror$request_uri":               "mirror mirror:80 /a?b=c&d",
		"http://mirror:81${uri}/x":                "mirror mirror:81 /a%20b%0D%0AX%3A%20y%23/x",
		"http://auth/c$request_uri":               "auth auth:80 /c/a?b=c&d",
		"http://auth/$uri":                        "auth auth:80 //a%20b%0D%0AX%3A%20y%23",
		"http://auth/$http_x/$arg_q/${cookie_c}x": "auth auth:80 /..%2F%3F%26%23%0D%0A/%2e%2E%2Fx%20y/a%3Bbx",
	} {
		u, err := ParseURL(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var q Call
		err = u.Fill(&q, "shop.example", lookup)
		if got := q.Host + " " + q.Address + " " + q.Target; err != nil || got != want ||
			q.Secure != strings.HasPrefix(text, "https") {
			t.Errorf("%s: %s %s %s %v, want %s", text, q.Host, q.Address, q.Target, err, want)
		}
	}
}

// FuzzURL checks that a URL is either rejected or results in a valid request head.
func FuzzURL(f *testing.F) {
	for _, text := range []string{
		"http://auth/", "https://$host:1/?$arg_a", "http://${host", "http://[::1]", "http://a@b/", "http://a:/",
		"http://$http_x/",
	} {
		f.Add(text, "a.example", "x y\r\n")
	}
	f.Fuzz(func(t *testing.T, text, host, value string) {
		u, err := ParseURL(text)
		if err != nil {
			return
		}
		var q Call
		if err := u.Fill(&q, "shop.example", func(name string) string {
			if name == "host" || name == "namespace" {
				return host
			}
			return value
		}); err != nil {
			return
		}
		if strings.ContainsFunc(q.Target+q.Host, func(r rune) bool { return r <= ' ' || r > '~' }) ||
			!strings.HasPrefix(q.Target, "/") ||
			strings.ContainsAny(q.Host, "@/?#") {
			t.Errorf("%q asks %q for %q", text, q.Host, q.Target)
		}
	})
}
