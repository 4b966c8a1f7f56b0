package featuretests

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// toldHeaders are the header fields about the client that an endpoint gets, in the order of the tests.
var toldHeaders = []string{
	"X-Real-Ip", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Proto",
	"X-Forwarded-Scheme", "X-Scheme",
	"X-Original-Forwarded-For", "X-Original-Forwarded-Host", "X-Forwarded-Prefix", "Proxy",
}

// respondWithHeaders responds with the Host header and toldHeaders.
func respondWithHeaders(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, r.Host)
	for _, name := range toldHeaders {
		fmt.Fprint(w, " ", strings.Join(r.Header[name], "+"))
	}
	fmt.Fprintf(w, " id=%d", len(r.Header.Get("X-Request-Id")))
}

// TestForwardedHeaders checks the headers that endpoints get for requests of a proxy, while the ConfigMap of a running
// controller changes.
func TestForwardedHeaders(t *testing.T) {
	ip, port := endpointOf(t, respondWithHeaders)
	_, others := backend(t, "other")
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one"),
		"configmap default/global")
	forged := []string{
		"X-Forwarded-For: 1.1.1.1, 2.2.2.2", "X-Forwarded-Proto: https", "X-Forwarded-Host: other.example",
		"X-Forwarded-Port: 444",
		"X-Real-IP: 6.6.6.6", "X-Client: 9.9.9.9", "Proxy: evil",
	}
	for i, c := range []struct {
		name string
		keys []string
		want string
	}{
		{"believes nobody", nil, "127.0.0.1 127.0.0.1 a.example OWN http http http 1.1.1.1, 2.2.2.2 other.example"},
		{"use-forwarded-headers", []string{`use-forwarded-headers: "true"`},
			"1.1.1.1 1.1.1.1 other.example 444 https https https 1.1.1.1, 2.2.2.2 other.example"},
		{"compute-full-forwarded-for", []string{`use-forwarded-headers: "true"`, `compute-full-forwarded-for: "true"`},
			"1.1.1.1 1.1.1.1, 2.2.2.2, 127.0.0.1 other.example 444 https https https 1.1.1.1, 2.2.2.2 other.example"},
		{"compute-full-forwarded-for alone", []string{`compute-full-forwarded-for: "true"`},
			"127.0.0.1 127.0.0.1 a.example OWN http http http 1.1.1.1, 2.2.2.2 other.example"},
		{"enable-real-ip", []string{`enable-real-ip: "true"`},
			"1.1.1.1 1.1.1.1 a.example OWN http http http 1.1.1.1, 2.2.2.2 other.example"},
		{"forwarded-for-header", []string{`enable-real-ip: "true"`, "forwarded-for-header: X-Client"},
			"9.9.9.9 9.9.9.9 a.example OWN http http http 1.1.1.1, 2.2.2.2 other.example"},
		{"a proxy that is trusted", []string{`use-forwarded-headers: "true"`, `proxy-real-ip-cidr: "127.0.0.0/8"`},
			"2.2.2.2 2.2.2.2 other.example 444 https https https 1.1.1.1, 2.2.2.2 other.example"},
		{"two of them", []string{`use-forwarded-headers: "true"`, `proxy-real-ip-cidr: "127.0.0.0/8,2.2.2.2"`},
			"1.1.1.1 1.1.1.1 other.example 444 https https https 1.1.1.1, 2.2.2.2 other.example"},
		{"a proxy that is not", []string{`use-forwarded-headers: "true"`, `proxy-real-ip-cidr: "10.0.0.0/8"`},
			"127.0.0.1 127.0.0.1 a.example OWN http http http 1.1.1.1, 2.2.2.2 other.example"},
	} {
		t.Run(c.name, func(t *testing.T) {
			host := fmt.Sprintf("h%d.example", i)
			in.write("global.yaml", global(c.keys...))
			in.write("sign.yaml", service("other", others, "127.0.0.1")+rule("sign", host, "Prefix", "/", "other"))
			in.becomes(host, "/", http.StatusOK, "other /")
			in.byEachVersion(t, func(t *testing.T, in *ingress) {
				// With TLS the port is 443, wherever the controller listens.
				_, own, _ := net.SplitHostPort(in.http)
				told := in.either(own+" http http http", "443 https https https")
				want := "a.example " + strings.Replace(c.want, "OWN http http http", told, 1) + "   id=32"
				if got := in.send(http.MethodGet, "/", nil, forged...); got.body != want {
					t.Errorf("got\n%q, not\n%q", got.body, want)
				}
			})
		})
	}
}

// TestHostOfTheEndpoint checks upstream-vhost, with variables, and x-forwarded-prefix, which requires rewrite-target.
func TestHostOfTheEndpoint(t *testing.T) {
	ip, port := endpointOf(t, respondWithHeaders)
	for annotations, want := range map[string][2]string{
		"upstream-vhost: inner.example":                                  {"inner.example", ""},
		"upstream-vhost: $service_name.$namespace.svc":                   {"one.default.svc", ""},
		"x-forwarded-prefix: /app":                                       {"a.example", ""},
		"x-forwarded-prefix: /app,rewrite-target: /x":                    {"a.example", "/app"},
		"upstream-vhost: ${host}.x,rewrite-target: /,proxy-body-size: 0": {"a.example.x", ""},
	} {
		in := inFrontOf(t, ip, port, strings.Split(annotations, ",")...)
		in.byEachVersion(t, func(t *testing.T, in *ingress) {
			fields := strings.Split(in.send(http.MethodGet, "/", nil).body, " ")
			if i := 1 + slices.Index(toldHeaders, "X-Forwarded-Prefix"); len(fields) <= i || fields[0] != want[0] ||
				fields[i] != want[1] {
				t.Errorf("%s: %q", annotations, fields)
			}
		})
		in.stop()
	}
}

// TestForgedForwardedHostLeadsNowhere checks that header fields that a client forges and a proxy forwards never cause
// a redirect to another host.
func TestForgedForwardedHostLeadsNowhere(t *testing.T) {
	ip, port := backend(t, "one")
	in := start(t, class+service("one", port, ip)+annotate(rule("to", "a.example", "Prefix", "/", "one"),
		"from-to-www-redirect", "true",
		"app-root", "/app")+annotate(rule("tls", "tls.example", "Prefix", "/", "one"), "force-ssl-redirect",
		"true")+
		global(`use-forwarded-headers: "true"`), "configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, field := range []string{
			"X-Forwarded-Host: www.a.example:80@evil.example", "X-Forwarded-Host: a:b@evil.example/",
			"X-Forwarded-Host: evil.example/x?y",
			"X-Forwarded-Host: x, y:@evil.example", "X-Forwarded-Proto: https://evil.example/?",
			"X-Forwarded-Proto: javascript",
			"X-Forwarded-Port: 80@evil.example", "X-Forwarded-Port: 1/evil.example",
		} {
			for _, host := range []string{"www.a.example", "a.example", "tls.example"} {
				got := in.sendBy(in.client, in.origin(host)+"/", http.MethodGet, nil, field)
				if got.status == http.StatusOK {
					continue
				}
				to, err := url.Parse(got.header.Get("Location"))
				stays := err == nil && slices.Contains([]string{"", "a.example", "www.a.example", "tls.example", "x"},
					to.Hostname())
				if !stays || !slices.Contains([]string{"", "http", "https"}, to.Scheme) || to.User != nil {
					t.Errorf("with %s, %s leads to %s: %v", field, host, got.header.Get("Location"), err)
				}
			}
		}
	})
}
