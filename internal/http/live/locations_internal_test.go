package live

import (
	"net/http"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestLocations checks nginx's order of locations, together with the routes of the host. A route is written as its type
// and its path, behind the namespace b if it belongs to another namespace than the locations. The location in which it
// stands follows "<".
func TestLocations(t *testing.T) {
	for name, test := range map[string]struct {
		routes []string
		// paths maps paths to the routes that must serve them.
		paths map[string]string
	}{
		"an equal path precedes all": {
			[]string{"location = /x", "location ^~ /x", "location ~ ^/x", "exact /x", "prefix /"},
			map[string]string{"/x": "location = /x", "/x/": "location ^~ /x", "/y": "prefix /"},
		},
		"a prefix is literal": {
			[]string{"location /admin", "prefix /"},
			map[string]string{
				"/admin": "location /admin", "/administrator": "location /admin", "/admin/x": "location /admin",
				"/Admin": "prefix /", "/adm": "prefix /",
			},
		},
		"the longest prefix": {
			[]string{"location /a", "location /a/b/c", "location ^~ /a/b", "prefix /a/b/c/d", "prefix /"},
			map[string]string{
				"/a/x": "location /a", "/a/b/x": "location ^~ /a/b", "/a/b/cx": "location /a/b/c",
				"/a/b/c/d/e": "prefix /a/b/c/d", "/a/b/c/dx": "location /a/b/c", "/x": "prefix /",
			},
		},
		"a prefix that a route has, too": {
			[]string{"location /a", "location /", "prefix /a", "prefix /"},
			map[string]string{"/a": "location /a", "/a/b": "location /a", "/b": "location /"},
		},
		"regular expressions": {
			[]string{
				"location ^~ /static", `location ~ \.php$`, `location ~* \.JPG$`, "location /img/large", "exact /x.php",
				"prefix /",
			},
			map[string]string{
				"/a.php": `location ~ \.php$`, "/a.PHP": "prefix /", "/img/large/a.jpg": `location ~* \.JPG$`,
				"/static/a.php": "location ^~ /static", "/x.php": "exact /x.php", "/img/large/a": "location /img/large",
			},
		},
		"regular expressions in locations": {
			[]string{
				"location /a", `location ~ \.php$ < location /a`, "location /a/b < location /a",
				"location ^~ /a/c < location /a", `location ~ x < location ^~ /a/c`, "location = /a/x.php",
				`location ~ ^/ax < location ~ \.php$`, "location ^~ /s", `location ~ \.css$ < location ^~ /s`,
				"location /s/t < location ^~ /s", `location ~ \.(css|php|txt)$`, "location ~* ^/(b|d)/X",
				"location ~ 1 < location ~* ^/(b|d)/X", "location ~ 12 < location ~* ^/(b|d)/X", "prefix /a/long",
				"regex /r",
			},
			map[string]string{
				"/a/y.php": `location ~ \.php$ < location /a`, "/a/b/y.php": `location ~ \.php$ < location /a`,
				"/a/b/y": "location /a/b < location /a", "/a/c/y.php": `location ~ \.(css|php|txt)$`,
				"/a/c/y": "location ^~ /a/c < location /a", "/a/c/x": "location ~ x < location ^~ /a/c",
				"/a/x.php": "location = /a/x.php", "/ax.php": `location ~ ^/ax < location ~ \.php$`,
				"/a/y.css": `location ~ \.(css|php|txt)$`, "/y.php": `location ~ \.(css|php|txt)$`,
				"/s/y.css": `location ~ \.css$ < location ^~ /s`, "/s/t/y.css": `location ~ \.css$ < location ^~ /s`,
				"/s/t/y.txt": "location /s/t < location ^~ /s", "/s/y.txt": "location ^~ /s",
				"/b/x": "location ~* ^/(b|d)/X", "/d/x12": "location ~ 1 < location ~* ^/(b|d)/X",
				"/d/x2": "location ~* ^/(b|d)/X", "/a/long/y.php": `location ~ \.(css|php|txt)$`,
				"/r/y.txtx": "regex /r",
			},
		},
		"the first regular expression": {
			[]string{"location ~ ^/a", "location ~ ^/ab", "prefix /"},
			map[string]string{"/ab": "location ~ ^/a"},
		},
		"a prefix before a route for a longer path": {
			[]string{"location ^~ /a", "location ~ ^/a", "prefix /a/b"},
			map[string]string{"/a/b": "location ~ ^/a", "/a/c": "location ^~ /a"},
		},
		"regular expressions of routes": {
			[]string{"location ~ ^/first", "regex /(.*)", "location ~ ^/last", "location /plain", "location ^~ /only"},
			map[string]string{
				"/first": "location ~ ^/first", "/last": "regex /(.*)", "/plain": "regex /(.*)",
				"/only": "location ^~ /only",
			},
		},
		"a host without a route for every path": {
			[]string{"location /a", "prefix /b"},
			map[string]string{"/a": "location /a", "/b": "prefix /b", "/c": ""},
		},
		"routes of another namespace": {
			[]string{"location /shop", "location = /x", "location ~ .", "b exact /x", "b prefix /shop",
				"prefix /shop/own"},
			map[string]string{
				"/x": "b exact /x", "/shop": "b prefix /shop", "/shop/own": "location ~ .", "/other": "location ~ .",
			},
		},
		"everywhere": {
			[]string{"! location = /x", "! location /shop", `! location ~ \.git`, "b prefix /"},
			map[string]string{
				"/x": "! location = /x", "/shop": "! location /shop", "/a/.git": `! location ~ \.git`,
				"/y": "b prefix /",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := hostOf(t, test.routes)
			for path, want := range test.paths {
				route, err := h.find(path, &message.Request{Method: http.MethodGet})
				if err != nil {
					t.Fatal(err)
				}
				got := ""
				if route != nil {
					got = test.routes[route.position]
				}
				if got != want {
					t.Errorf("%s is served by %q, want %q", path, got, want)
				}
			}
		})
	}
}

func hostOf(t *testing.T, routes []string) *host {
	t.Helper()
	h := newHost("h", &document.Host{})
	for _, text := range routes {
		r := &Route{Route: exchange.Route{Origin: "Ingress/a/x"}}
		if rest, ok := strings.CutPrefix(text, "b "); ok {
			r.Origin, text = "Ingress/b/x", rest
		}
		text, r.everywhere = strings.CutPrefix(text, "! ")
		if own, outer, ok := strings.Cut(text, " < "); ok {
			at := strings.LastIndexByte(outer, ' ')
			text, r.within = own, &ir.PathMatch{Type: ir.MatchType(outer[:at]), Path: outer[at+1:]}
		}
		at := strings.LastIndexByte(text, ' ')
		r.Type, r.Path = text[:at], text[at+1:]
		if err := h.add(r); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// TestLocationOutside checks that a location is not served if the location in which it stands is missing.
func TestLocationOutside(t *testing.T) {
	h := hostOf(t, []string{"location /a"})
	for _, of := range []ir.MatchType{ir.LocationRegex, ir.LocationPrefix, ir.LocationNamed} {
		r := &Route{Route: exchange.Route{Origin: "Ingress/a/x", Type: string(of), Path: "/a/b"},
			within: &ir.PathMatch{Type: ir.LocationPrefixOnly, Path: "/a"}}
		if err := h.add(r); err == nil || !strings.Contains(err.Error(), "the location /a") {
			t.Errorf("%s: %v", of, err)
		}
	}
}

// TestLocationErrors checks locations that cannot be added.
func TestLocationErrors(t *testing.T) {
	for _, routes := range [][]string{
		{"location = /a", "location = /a"}, {"location /a", "location ^~ /a"}, {"location ~ ("}, {"location ~* ("},
	} {
		h := hostOf(t, routes[:len(routes)-1])
		at := strings.LastIndexByte(routes[len(routes)-1], ' ')
		if err := add(h, routes[len(routes)-1][:at], routes[len(routes)-1][at+1:]); err == nil {
			t.Errorf("%q: no error", routes)
		}
	}
}
