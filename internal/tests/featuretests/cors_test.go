package featuretests

import (
	"io"
	"net/http"
	"testing"
)

// TestCORS checks that responses and errors have the CORS headers of the Ingress instead of the endpoint's, and that
// OPTIONS gets its response before any access check.
func TestCORS(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "https://endpoint.example")
		_, _ = io.WriteString(w, "web "+r.Method)
	})
	in := start(t, class+service("web", port, ip)+service("none", "1")+
		annotated("any", "any.example", "web", "enable-cors", "true", "cors-expose-headers", "X-Total")+
		annotated("some", "some.example", "web", "enable-cors", "true", "cors-allow-origin",
			"https://*.shop.example:8443, null",
			"cors-allow-credentials", "false", "cors-max-age", "5", "denylist-source-range", "0.0.0.0/0,::/0")+
		annotated("gone", "gone.example", "none", "enable-cors", "true"))
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, c := range []struct {
			method, host, origin string
			status               int
			allowed              string
		}{
			{http.MethodGet, "any.example", "https://a.example", 200, "*"},
			{http.MethodOptions, "any.example", "https://a.example", 204, "*"},
			{http.MethodGet, "gone.example", "https://a.example", 503, "*"},
			{http.MethodOptions, "some.example", "https://A.shop.example:8443", 204, "https://A.shop.example:8443"},
			{http.MethodGet, "some.example", "https://a.shop.example:8443", 403, "https://a.shop.example:8443"},
			{http.MethodOptions, "some.example", "https://a.shop.example:8443.evil.example", 403, ""},
		} {
			got := in.sendBy(in.client, in.origin(c.host)+"/", c.method, nil, "Origin: "+c.origin)
			if got.status != c.status || got.header.Get("Access-Control-Allow-Origin") != c.allowed {
				t.Errorf("%s %s from %q: %d for %q, want %d for %q", c.method, c.host, c.origin, got.status,
					got.header.Get("Access-Control-Allow-Origin"), c.status, c.allowed)
			}
			if fields := got.header.Values("Access-Control-Allow-Methods"); (len(fields) == 1) != (c.allowed != "") {
				t.Errorf("%s %s from %q: the methods are %q", c.method, c.host, c.origin, fields)
			}
		}
	})
}

// TestCORSHeaders checks the response headers about the requests that scripts may send, without and with the
// annotations.
func TestCORSHeaders(t *testing.T) {
	ip, port := endpointOf(t, func(http.ResponseWriter, *http.Request) {})
	in := start(t, class+service("web", port, ip)+annotated("usual", "usual.example", "web", "enable-cors", "true")+
		annotated("own", "own.example", "web", "enable-cors", "true", "cors-allow-methods", "GET, PURGE",
			"cors-allow-headers", "X-Token",
			"cors-expose-headers", "X-Total", "cors-allow-credentials", "false", "cors-max-age", "5"))
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for host, want := range map[string]map[string]string{
			"usual.example": {
				"Allow-Methods": "GET, PUT, POST, DELETE, PATCH, OPTIONS", "Allow-Credentials": "true",
				"Max-Age": "1728000",
				"Allow-Headers": "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control," +
					"Content-Type,Range,Authorization",
			},
			"own.example": {"Allow-Methods": "GET, PURGE", "Allow-Headers": "X-Token", "Expose-Headers": "X-Total",
				"Max-Age": "5"},
		} {
			got := in.sendBy(in.client, in.origin(host)+"/", http.MethodOptions, nil,
				"Origin: https://a.example").header
			for _, name := range []string{"Allow-Methods", "Allow-Headers", "Expose-Headers",
				"Allow-Credentials", "Max-Age"} {
				if found := got.Get("Access-Control-" + name); found != want[name] {
					t.Errorf("%s: %s is %q, want %q", host, name, found, want[name])
				}
			}
		}
	})
}
