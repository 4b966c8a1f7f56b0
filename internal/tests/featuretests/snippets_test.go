package featuretests

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"testing"
)

// TestSnippets checks that an Ingress with a snippet that may reject requests and is not supported gets 503 on all its
// paths and an error, and that the other directives get a problem for their line at most.
func TestSnippets(t *testing.T) {
	ip, port := backend(t, "one")
	manifests := class + service("one", port, ip) +
		global("annotations-risk-level: Critical", `allow-snippet-annotations: "true"`)
	cases := map[string]struct {
		annotations []string
		status      int
		reasons     []string
	}{
		"deny":   {[]string{"configuration-snippet", "deny all;"}, 403, nil},
		"guard":  {[]string{"configuration-snippet", "auth_request /login;"}, 503, []string{"UnsupportedValue"}},
		"server": {[]string{"server-snippet", "auth_request /login;"}, 503, []string{"UnsupportedValue"}},
		"auth":   {[]string{"auth-snippet", "deny all;"}, 503, []string{"UnsupportedValue"}},
		"rules":  {[]string{"modsecurity-snippet", "SecRuleEngine On"}, 503, []string{"UnsupportedValue"}},
		"lua": {[]string{"configuration-snippet", "access_by_lua_block { ngx.exit(403) }"}, 503,
			[]string{"UnsupportedValue"}},
		"broken":  {[]string{"configuration-snippet", "deny all"}, 503, []string{"UnsupportedValue"}},
		"headers": {[]string{"configuration-snippet", "add_header X-A b; proxy_read_timeout 60s;"}, 200, nil},
		"leftout": {[]string{"configuration-snippet", "proxy_cache zone;\nserver_tokens off;"}, 200,
			[]string{"UnsupportedValue", "UnsupportedValue"}},
		"detects": {[]string{"enable-modsecurity", "true"}, 200, []string{"InvalidAnnotation"}},
		"crs":     {[]string{"enable-owasp-core-rules", "true"}, 200, []string{"InvalidAnnotation"}},
		"stream":  {[]string{"stream-snippet", "server { listen 1; }"}, 200, []string{"UnsupportedValue"}},
		"unread":  {[]string{"stream-snippet", "server { listen 1"}, 200, []string{"UnsupportedValue"}},
		"nothing": {[]string{"configuration-snippet", "false", "server-snippet", "", "enable-modsecurity", "false",
			"stream-snippet", ""}, 200, nil},
	}
	for name, c := range cases {
		manifests += annotated(name, name+".example", "one", c.annotations...)
	}
	in := start(t, manifests, "configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for name, c := range cases {
			for _, path := range []string{"/", "/admin"} {
				if got := in.get(name+".example", path); got.status != c.status {
					t.Errorf("%s: %s is %d, want %d", name, path, got.status, c.status)
				}
			}
		}
	})
	for name, c := range cases {
		if got := in.reasons("Ingress/default/" + name); !slices.Equal(got, c.reasons) {
			t.Errorf("%s: the reasons are %v, want %v", name, got, c.reasons)
		}
	}
	in.load(fmt.Sprintf("manifests %s\nsnippets ignore", in.folder))
	for name := range cases {
		in.becomes(name+".example", "/admin", http.StatusOK, "one /admin")
	}
}

// TestSnippetsOfTheConfigMap checks the same for the snippet keys of the ConfigMap, and for the Ingresses to which
// each key applies.
func TestSnippetsOfTheConfigMap(t *testing.T) {
	const on = "modsecurity-snippet=SecRuleEngine On"
	ip, port := backend(t, "one")
	in := start(t, class+service("one", port, ip)+annotated("plain", "plain.example", "one")+
		annotated("waf", "waf.example", "one", "enable-modsecurity", "true")+
		annotated("nowaf", "nowaf.example", "one", "enable-modsecurity", "false")+
		annotated("own", "own.example", "one", "auth-url", "http://"+net.JoinHostPort(ip, port)+"/")+
		annotated("noauth", "noauth.example", "one", "enable-global-auth", "false"), "configmap default/global")
	for _, c := range []struct {
		name string
		keys []string
		// closed are the hosts on which requests get 503.
		closed []string
	}{
		{"nothing", []string{"http-snippet=false", "server-snippet=", "use-geoip2=false"}, nil},
		{"harmless", []string{"http-snippet=map $host $b { default 1; }", "location-snippet=gzip on;"}, nil},
		{"variables", []string{"http-snippet=geo $bad { default 1; }", "location-snippet=set $a $bad;"}, nil},
		{"http", []string{"http-snippet=auth_request /login;"}, []string{"plain", "waf", "nowaf", "own", "noauth"}},
		{"another file", []string{"http-snippet=map $host $a { include /etc/a; }"},
			[]string{"plain", "waf", "nowaf", "own", "noauth"}},
		{"no variable", []string{"http-snippet=map $nosuch $bad { }", "location-snippet=set $a $bad;"},
			[]string{"plain", "waf", "nowaf", "own", "noauth"}},
		{"server", []string{"server-snippet=auth_request /login;"},
			[]string{"plain", "waf", "nowaf", "own", "noauth"}},
		{"location", []string{"location-snippet=auth_request /login;"},
			[]string{"plain", "waf", "nowaf", "own", "noauth"}},
		{"auth without global-auth-url", []string{"global-auth-snippet=deny all;"}, nil},
		{"auth", []string{"global-auth-snippet=deny all;", "global-auth-url=http://127.0.0.1:1/"},
			[]string{"plain", "waf", "nowaf"}},
		{"main and stream", []string{"main-snippet=env A;", "stream-snippet=server { listen 1; }",
			"use-geoip2=true"}, nil},
		{"unreadable main and stream", []string{"main-snippet=env A", "stream-snippet=}"}, nil},
		{"rules", []string{on}, []string{"waf"}},
		{"rules for all", []string{on, "enable-modsecurity=true"}, []string{"plain", "waf", "own", "noauth"}},
		{"core rules for all", []string{on, "enable-owasp-modsecurity-crs=true"},
			[]string{"plain", "waf", "nowaf", "own", "noauth"}},
		{"detection", []string{"modsecurity-snippet=SecRuleEngine DetectionOnly", "enable-modsecurity=true"}, nil},
	} {
		t.Run(c.name, func(*testing.T) {
			in.globalKeys(c.keys...)
			for _, host := range []string{"plain", "waf", "nowaf", "own", "noauth"} {
				want, body := http.StatusOK, "one /"
				if slices.Contains(c.closed, host) {
					want, body = http.StatusServiceUnavailable, ""
				}
				in.expect(host+".example", "/", want, body)
			}
		})
	}
}
