package featuretests

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestWireHeaders checks which header fields of a client the endpoint gets. Connection has a meaning in HTTP/1 only.
func TestWireHeaders(t *testing.T) {
	in, requests := wired(t)
	for name, c := range map[string]struct {
		sent []string
		want map[string]string
	}{
		"forwarded": {
			[]string{
				"X-Forwarded-For: 6.6.6.6", "X-Forwarded-Proto: ftp", "X-Forwarded-Host: evil", "X-Forwarded-Port: 1",
				"X-Forwarded-Scheme: ftp", "X-Scheme: ftp",
			},
			map[string]string{
				"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "SCHEME", "X-Forwarded-Host": "a.example",
				"X-Forwarded-Port":   "PORT",
				"X-Forwarded-Scheme": "SCHEME", "X-Scheme": "SCHEME", "X-Original-Forwarded-For": "6.6.6.6",
				"X-Original-Forwarded-Host": "evil",
			},
		},
		"identity": {
			[]string{
				"X-Real-IP: 6.6.6.6", "Forwarded: for=6.6.6.6", "X-Original-URI: /x", "X-Original-URL: /x",
				"X-Rewrite-URL: /x",
				"X-Original-Method: PUT", "Proxy: evil",
			},
			map[string]string{
				"X-Real-Ip": "127.0.0.1", "Forwarded": "", "X-Original-Uri": "", "X-Original-Url": "",
				"X-Rewrite-Url":     "",
				"X-Original-Method": "", "Proxy": "",
			},
		},
		"a long request id": {
			[]string{"X-Request-ID: " + strings.Repeat("x", 128)},
			map[string]string{"X-Request-Id": strings.Repeat("x", 128)},
		},
		"a request id": {[]string{"X-Request-ID: abc-1"}, map[string]string{"X-Request-Id": "abc-1"}},
		"underscores and dots": {
			[]string{"X_Real_IP: 6.6.6.6", "X.Forwarded.For: 6.6.6.6"},
			map[string]string{"X_real_ip": "", "X.forwarded.for": ""},
		},
		"proxies":  {[]string{"Via: 1.1 a", "Via: 1.1 b"}, map[string]string{"Via": "1.1 a, 1.1 b"}},
		"no proxy": {nil, map[string]string{"Via": "", "Cdn-Loop": "k8singress"}},
		"CDNs": {[]string{`CDN-Loop: a; b="c"`, "CDN-Loop: k8singress", "CDN_Loop: d"},
			map[string]string{"Cdn-Loop": `a; b="c", k8singress, k8singress`}},
		"an expectation": {[]string{"Expect: 100-continue"}, map[string]string{"Expect": ""}},
		"several values": {[]string{"X-A: 1", "X-A: 2", "X-B: "},
			map[string]string{"X-A": "1 and 2", "X-B": ""}},
		"trailers are welcome":   {[]string{"TE: trailers"}, map[string]string{"Te": "", "Connection": ""}},
		"credentials of a proxy": {[]string{"Proxy-Authorization: x"}, map[string]string{"Proxy-Authorization": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			in.byEachVersion(t, func(t *testing.T, in *ingress) { in.arrives(t, c.sent, c.want, requests) })
		})
	}
	for name, c := range map[string]struct {
		sent []string
		want map[string]string
	}{
		"names what we set": {
			[]string{"Connection: X-Forwarded-For, X-Auth, X-Real-IP, X-Request-ID, CDN-Loop, Host", "X-Auth: 1",
				"CDN-Loop: other"},
			map[string]string{"X-Auth": "", "X-Forwarded-For": "127.0.0.1", "X-Real-Ip": "127.0.0.1",
				"Cdn-Loop": "other, k8singress"},
		},
		"names it in lower case": {[]string{"Connection: x-forwarded-for"},
			map[string]string{"X-Forwarded-For": "127.0.0.1", "Connection": ""}},
		"names what we look at": {
			[]string{"Connection: Cookie, Authorization, ssl-client-verify", "Cookie: a=b", "Authorization: x",
				"Ssl-Client-Verify: NONE"},
			map[string]string{"Cookie": "a=b", "Authorization": "x", "Ssl-Client-Verify": "NONE"},
		},
		"another protocol": {
			[]string{"Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__"},
			map[string]string{"Upgrade": "", "Http2-Settings": "", "Connection": ""},
		},
		"listed with another": {[]string{"Upgrade: websocket, h2c", "Connection: Upgrade"},
			map[string]string{"Upgrade": ""}},
		"of one connection": {
			[]string{"Keep-Alive: 5", "Proxy-Connection: x", "Connection: keep-alive"},
			map[string]string{"Keep-Alive": "", "Proxy-Connection": ""},
		},
	} {
		t.Run("Connection "+name, func(t *testing.T) {
			in.byHTTP1(t, func(t *testing.T, in *ingress) { in.arrives(t, c.sent, c.want, requests) })
		})
	}
	for _, bad := range []string{strings.Repeat("x", 129), "a b", "a\"b"} {
		in.byEachVersion(t, func(t *testing.T, in *ingress) {
			q := question{fields: []string{"X-Request-ID: " + bad}}
			if r := in.gets(t, q.usual(), "200", requests); r == nil || len(r.Header.Get("X-Request-Id")) != 32 {
				t.Errorf("the request id %q became %v", bad, r)
			}
		})
	}
}

// arrives sends fields, and checks which of them the endpoint gets.
func (in *ingress) arrives(t *testing.T, sent []string, want map[string]string, requests <-chan *http.Request) {
	t.Helper()
	q := question{fields: sent}
	r := in.gets(t, q.usual(), "200", requests)
	if r == nil {
		return
	}
	for header, want := range want {
		if got := strings.Join(r.Header[header], " and "); got != in.fillIn(want) {
			t.Errorf("%s: %q, want %q", header, got, in.fillIn(want))
		}
	}
}

// TestWireTrailersOfOthers checks that no trailer has the name of a field that proxy-set-headers sets, or of one in
// front of the body.
func TestWireTrailersOfOthers(t *testing.T) {
	for _, buffering := range []string{"on", "off"} {
		in, requests := wired(t, "proxy-request-buffering: "+buffering)
		in.write("set.yaml", global("proxy-set-headers: default/set")+
			configMap("set", "X-Tenant: one", `X-Gone: ""`))
		in.load("manifests " + in.folder + "\nconfigmap default/global")
		in.eventually("the header of the ConfigMap", func() error {
			if r := in.gets(t, (&question{method: "GET"}).usual(), "200", requests); r == nil ||
				r.Header.Get("X-Tenant") != "one" {
				return errors.New("it is not there")
			}
			return nil
		})
		q := question{method: "POST", body: []string{"body"}, fields: []string{"X-User: alice"}}
		for _, line := range []string{"X-Ok: 1", "X-Tenant: two", "X_Tenant: two", "x-gone: 1", "X-User: mallory"} {
			name, _ := cutLine(line)
			q.fields, q.trailers = append(q.fields, "Trailer: "+name), append(q.trailers, line)
		}
		in.byEachVersion(t, func(t *testing.T, in *ingress) {
			r := in.gets(t, q.usual(), "200", requests)
			if r == nil {
				return
			}
			if got := fmt.Sprint(r.Header["X-Tenant"], r.Trailer); got != "[one] map[X-Ok:[1]]" {
				t.Errorf("buffering %s: the endpoint gets %s", buffering, got)
			}
		})
		in.stop()
	}
}

// TestWireTrailers checks that trailers contain no field that would be malformed, replaced or used in a header.
func TestWireTrailers(t *testing.T) {
	for _, buffering := range []string{"on", "off"} {
		in, requests := wired(t, "proxy-request-buffering: "+buffering)
		q := question{method: "POST", body: []string{"body"}}
		for _, line := range []string{
			"X-Ok: 1", "Ssl-Client-Verify: SUCCESS", "X-Forwarded-For: 6.6.6.6", "X-Real-IP: 6.6.6.6",
			"X-Request-ID: x", "Via: 1.1 x", "CDN-Loop: x", "Cookie: a=b",
			"X_Real_IP: 6.6.6.6", "Forwarded: for=6.6.6.6", "X-Original-URL: /admin",
		} {
			name, _ := cutLine(line)
			q.fields, q.trailers = append(q.fields, "Trailer: "+name), append(q.trailers, line)
		}
		in.byEachVersion(t, func(t *testing.T, in *ingress) {
			r := in.gets(t, q.usual(), "200", requests)
			if r == nil {
				return
			}
			if got := fmt.Sprint(r.Trailer); got != "map[X-Ok:[1]]" {
				t.Errorf("buffering %s: the endpoint gets %s", buffering, got)
			}
		})
		in.byHTTP1(t, func(t *testing.T, in *ingress) {
			// The HTTP/2 server rejects these as malformed.
			q := question{method: "POST", body: []string{"body"},
				trailers: []string{"Host: evil", "Content-Length: 5", "Connection: x",
					"Transfer-Encoding: gzip", "Authorization: x", "X-Ok: 1"}}
			if r := in.gets(t, q.usual(), "200", requests); r == nil || fmt.Sprint(r.Trailer) != "map[X-Ok:[1]]" {
				t.Errorf("buffering %s: the endpoint gets %v", buffering, r)
			}
		})
		in.stop()
	}
}
