package featuretests

import (
	"net/http"
	"strings"
	"testing"
)

// TestPassthroughOfClosed checks that a host which rejects requests because of an unreadable guard passes no
// connection through either, and that it does without the guard.
func TestPassthroughOfClosed(t *testing.T) {
	e := newTLSEnd(t, "one", "shop.example")
	for _, guard := range []struct {
		name, value string
		status      int
	}{
		{"whitelist-source-range", "nowhere", http.StatusServiceUnavailable},
		{"whitelist-source-range", "192.0.2.0/24", http.StatusForbidden},
		{"server-snippet", "deny all;", http.StatusForbidden},
		{"server-snippet", "auth_request /login;", http.StatusServiceUnavailable},
		{"server-snippet", "location /admin { deny all; }", http.StatusForbidden},
		{"k8singress.io/maintenance", "true", http.StatusServiceUnavailable},
		{"k8singress.io/maintenance", "perhaps", http.StatusServiceUnavailable},
		{"auth-tls-secret", "no-namespace", http.StatusForbidden},
		{"auth-tls-secret", "elsewhere/authority", http.StatusForbidden},
	} {
		t.Run(guard.name+" "+guard.value, func(t *testing.T) {
			in := start(t, class+service("one", e.port, e.ip)+allowingSnippets(), "ssl_passthrough",
				"configmap default/global")
			in.write("shop.yaml", annotated("shop", "shop.example", "one", "ssl-passthrough", "true",
				guard.name, guard.value))
			in.becomes("shop.example", "/admin", guard.status, "")
			in.endsHere("shop.example")
			if got := in.askSecurely(in.secureClient(), "shop.example", "/admin", "X-A"); got.status != guard.status {
				t.Errorf("%d %q", got.status, got.body)
			}
			if all := strings.Join(in.messages("Ingress/default/shop", "InvalidAnnotation"),
				"\n"); !strings.Contains(all, "not passed through") {
				t.Errorf("it says %q", all)
			}
			in.write("shop.yaml", passed("shop", "shop.example", "one"))
			in.reaches("shop.example", e, "one shop.example")
		})
	}
}

// TestPassthroughOfGuardedHost checks that no connection is passed through around a location that the server-snippet of
// the ConfigMap, or of another Ingress of the host, guards.
func TestPassthroughOfGuardedHost(t *testing.T) {
	e := newTLSEnd(t, "one", "shop.example")
	const guard = "location /admin { deny all; }"
	passing := passed("shop", "shop.example", "one")
	other := annotate(rule("other", "shop.example", "Prefix", "/other", "one"), "server-snippet", guard)
	for name, objects := range map[string]string{
		"ConfigMap":       allowingSnippets("server-snippet: "+guard) + passing,
		"another Ingress": allowingSnippets() + passing + other,
	} {
		t.Run(name, func(t *testing.T) {
			in := start(t, class+service("one", e.port, e.ip)+objects, "ssl_passthrough", "configmap default/global")
			in.becomes("shop.example", "/admin", http.StatusForbidden, "")
			in.endsHere("shop.example")
			if got := in.askSecurely(in.secureClient(), "shop.example", "/admin", "X-A"); got.status != 403 {
				t.Errorf("%d %q", got.status, got.body)
			}
		})
	}
}

// TestVerdictsOfPassthroughAreTrue checks that no verdict promises a response to connections that have no endpoint.
func TestVerdictsOfPassthroughAreTrue(t *testing.T) {
	in := start(t, class+service("one", "443")+passed("shop", "shop.example", "one")+rule("plain", "plain.example",
		"Prefix", "/", "one"),
		"ssl_passthrough")
	for ingress, want := range map[string]string{
		"shop": "TLS connections are closed, and requests without TLS get 503", "plain": "endpoints: requests get 503",
	} {
		if message := in.message("Ingress/default/"+ingress, "NoEndpoints"); !strings.HasSuffix(message, want) {
			t.Errorf("%s: it says %q", ingress, message)
		}
	}
}
