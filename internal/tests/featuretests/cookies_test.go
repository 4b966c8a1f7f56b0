package featuretests

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestCookieRewrite checks how the cookies of endpoints are rewritten, over HTTP, also with a large body, and over
// FastCGI. Cookies of the session affinity do not change.
func TestCookieRewrite(t *testing.T) {
	answer := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Set-Cookie", "a=/app/; Path=/app/shop; HttpOnly; domain=.Old.example")
		w.Header().Add("Set-Cookie", "b=1;path=/other;Domain=new.example")
		fmt.Fprint(w, r.URL.Path)
	}
	plain, plainPort := endpointOf(t, answer)
	application, applicationPort := fastCGI(t, answer)
	large := strings.Repeat("x", 100<<10)
	for _, c := range []struct {
		name, path, domain string
		want               []string
	}{
		{"texts", "/app/ /", "old.example $host",
			[]string{"a=/app/; Path=/shop; HttpOnly; domain=.a.example", "b=1;path=/other;Domain=new.example"}},
		{"expressions", "~*^/APP/(.*) /x/$1", `~^(.+)\.example$ $1.test`,
			[]string{"a=/app/; Path=/x/shop; HttpOnly; domain=.Old.test", "b=1;path=/other;Domain=new.test"}},
		{"a value that would end the attribute", "/app/ /$arg_x", "off",
			[]string{"a=/app/; Path=/app/shop; HttpOnly; domain=.Old.example", "b=1;path=/other;Domain=new.example"}},
	} {
		settings := []string{"proxy-cookie-path: " + c.path, "proxy-cookie-domain: " + c.domain}
		t.Run(c.name, func(t *testing.T) {
			in := inFrontOf(t, plain, plainPort, append(settings, "affinity: cookie")...)
			in.byEachVersion(t, func(t *testing.T, in *ingress) {
				for _, body := range []string{"", large} {
					if got := in.send(http.MethodPost, "/?x=;secure", strings.NewReader(body)); !setsCookies(got,
						c.want, "INGRESSCOOKIE=") {
						t.Errorf("%d bytes: %q", len(body), got.header["Set-Cookie"])
					}
				}
			})
			in = inFrontOf(t, application, applicationPort, append(settings, "backend-protocol: FCGI")...)
			if got := in.send(http.MethodGet, "/x.php?x=;secure", nil); !setsCookies(got, c.want, "") {
				t.Errorf("FastCGI: %q", got.header["Set-Cookie"])
			}
		})
	}
}

// setsCookies reports whether a response has these cookies, and one more with the prefix own, unless own is empty.
func setsCookies(got answer, want []string, own string) bool {
	var others []string
	for _, cookie := range got.header["Set-Cookie"] {
		if own == "" || !strings.HasPrefix(cookie, own) {
			others = append(others, cookie)
		}
	}
	more := len(got.header["Set-Cookie"]) - len(others)
	return strings.Join(others, "|") == strings.Join(want, "|") && (more == 1) == (own != "")
}

// TestCookieRewriteOfTheConfigMap checks that the keys apply to Ingresses without their own annotation, and that they
// change without a reload.
func TestCookieRewriteOfTheConfigMap(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie",
			"a=b; path=/app/")
	})
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one"),
		"configmap default/global")
	in.write("global.yaml", global("proxy-cookie-path: /app/ /"))
	in.eventually("the key counts", func() error {
		if got := in.get("a.example", "/").header.Get("Set-Cookie"); got != "a=b; path=/" {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
}
