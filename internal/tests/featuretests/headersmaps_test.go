package featuretests

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// headerMaps are the ConfigMaps that the controller's ConfigMap names for header fields.
const headerMaps = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: answers}
data:
  X-Frame-Options: DENY
  X-Ask: "$request_method $namespace"
  X-Unsafe: "$uri"
  Content-Length: "7"
---
apiVersion: v1
kind: ConfigMap
metadata: {name: requests}
data:
  X-Start: t=${msec}
  X-Forwarded-Proto: gopher
  X-Gone: ""
  CDN-Loop: none
  X-Asked: "$http_x_gone at $proxy_add_x_forwarded_for"
`

// TestHeaderMaps checks that add-headers, proxy-set-headers, hide-headers and proxy-add-original-uri-header change the
// headers of clients and endpoints, in each version of HTTP.
func TestHeaderMaps(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Frame-Options", "SAMEORIGIN")
		w.Header().Set("X-Powered-By", "PHP")
		w.Header().Set("X-Kept", "yes")
		if err := json.NewEncoder(w).Encode(r.Header); err != nil {
			t.Error(err)
		}
	})
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one")+headerMaps+
		global("add-headers: default/answers", "proxy-set-headers: default/requests",
			"hide-headers: X-Powered-By, X-Nothing", `proxy-add-original-uri-header: "true"`),
		"configmap default/global")
	if reasons := in.reasons("ConfigMap/default/answers"); !slices.Equal(reasons, []string{"InvalidEntry"}) {
		t.Errorf("the ConfigMap is told %v", reasons)
	}
	in.awaitVerdict("ConfigMap/default/requests", "InvalidEntry", "CDN-Loop")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		got := in.sendBy(in.client, in.origin("a.example")+"/x%0d%0ay?z", http.MethodGet, nil,
			"X-Gone: client", "X-Forwarded-For: 9.9.9.9", "X-Forwarded-Proto: ftp")
		for name, want := range map[string][]string{
			"X-Frame-Options": {"DENY"}, "X-Ask": {"GET default"}, "X-Unsafe": nil, "X-Powered-By": nil,
			"X-Kept": {"yes"},
		} {
			if !slices.Equal(got.header[name], want) {
				t.Errorf("the client gets %s %q, want %q", name, got.header[name], want)
			}
		}
		var seen http.Header
		if err := json.Unmarshal([]byte(got.body), &seen); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string][]string{
			"X-Forwarded-Proto": {"gopher"}, "X-Gone": nil, "X-Original-Uri": {"/x%0d%0ay?z"},
			"X-Asked": {"client at 9.9.9.9, 127.0.0.1"}, "Cdn-Loop": {"k8singress"},
		} {
			if !slices.Equal(seen[name], want) {
				t.Errorf("the endpoint gets %s %q, want %q", name, seen[name], want)
			}
		}
		if at := seen.Get("X-Start"); !strings.HasPrefix(at, "t=1") {
			t.Errorf("the endpoint is told that it began at %q", at)
		}
		if nobody := in.get("nobody.example", "/"); nobody.status != http.StatusNotFound ||
			nobody.header.Get("X-Frame-Options") != "DENY" || nobody.header.Get("X-Ask") != "" {
			t.Errorf("a host that nobody has is answered with %d and %v", nobody.status, nobody.header)
		}
	})
	in.write("manifests.yaml", class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one")+
		global("add-headers: default/answers"))
	in.eventually("nothing is added without the ConfigMap", func() error {
		got := in.get("a.example", "/")
		if got.header.Get("X-Frame-Options") != "SAMEORIGIN" || got.header.Get("X-Powered-By") != "PHP" {
			return fmt.Errorf("the client gets %v", got.header)
		}
		return nil
	})
}

// TestForwardedHostHeader checks that the original host can be read from a configured header of the proxy in front.
func TestForwardedHostHeader(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w,
			r.Header.Get("X-Forwarded-Host"))
	})
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one")+
		global(`use-forwarded-headers: "true"`, "forwarded-host-header: X-Asked-Host"), "configmap default/global")
	got := in.sendBy(in.client, in.origin("a.example")+"/", http.MethodGet, nil, "X-Asked-Host: www.example",
		"X-Forwarded-Host: forged.example")
	if got.body != "www.example" {
		t.Errorf("the endpoint is told that %q was asked", got.body)
	}
}
