package featuretests

import (
	"net/http"
	"strings"
	"testing"
)

// visitor sends a request, such as "GET a.example", for "/" with a client address that a trusted proxy forwards, and
// checks the status and Location.
func (in *ingress) visitor(client, request string, status int, location string) {
	in.Helper()
	method, host, _ := strings.Cut(request, " ")
	got := in.sendBy(in.client, in.origin(host)+"/", method, nil, "X-Forwarded-For: "+client,
		"Origin: https://app.example", "Access-Control-Request-Method: GET")
	if got.status != status || got.header.Get("Location") != location {
		in.Errorf("%s of %q: %d %q %q, want %d %q", request, client, got.status,
			got.header.Get("Location"), got.body, status, location)
	}
}

// maintained returns Ingresses that are closed for maintenance, with settings whose filters come later.
func maintained(t *testing.T) string {
	t.Helper()
	ip, port := backend(t, "web")
	_, pages := errorPages(t, fine)
	const on, allowed = "k8singress.io/maintenance", "k8singress.io/maintenance-allowlist"
	return class + service("web", port, ip) + service("pages", pages, ip) +
		annotated("all", "all.example", "web", on, "true") +
		annotated("some", "some.example", "web", on, "true", allowed, "192.0.2.0/24,2001:db8::/32", "enable-cors",
			"true", "denylist-source-range", "192.0.2.66") +
		annotate(rule("root", "root.example", "Prefix", "/app", "web"), on, "true", allowed, "192.0.2.0/24",
			"app-root", "/app", "custom-http-errors", "503", "default-backend", "pages") +
		annotated("moved", "moved.example", "web", on, "true", allowed, "192.0.2.0/24", "permanent-redirect",
			"https://new.example/") +
		annotated("secure", "secure.example", "web", on, "true", allowed, "192.0.2.0/24", "force-ssl-redirect",
			"true") +
		annotated("shut", "shut.example", "web", on, "true", "force-ssl-redirect", "true") +
		annotated("wrong", "wrong.example", "web", on, "true", allowed, "192.0.2.1,office") +
		annotated("unused", "unused.example", "web", allowed, "office")
}

// proxiesTrusted are the ConfigMap keys for requests with forwarded client addresses.
var proxiesTrusted = []string{"use-forwarded-headers=true", "proxy-real-ip-cidr=127.0.0.0/8"}

// TestMaintenance checks that a closed Ingress serves only allowed clients, for whom all its other settings apply. For
// other clients, it runs before app-root, CORS and redirects to another URL.
func TestMaintenance(t *testing.T) {
	in := start(t, maintained(t), "configmap default/global")
	in.globalKeys(proxiesTrusted...)
	in.byEachVersion(t, func(_ *testing.T, in *ingress) {
		const staff, other = "192.0.2.1", "198.51.100.1"
		in.visitor(staff, "GET all.example", http.StatusServiceUnavailable, "")
		for _, client := range []string{staff, "2001:db8::1"} {
			in.visitor(client, "GET some.example", http.StatusOK, "")
			in.visitor(client, "OPTIONS some.example", http.StatusNoContent, "")
		}
		for _, client := range []string{other, "2001:db9::1", ""} {
			in.visitor(client, "GET some.example", http.StatusServiceUnavailable, "")
			in.visitor(client, "OPTIONS some.example", http.StatusServiceUnavailable, "")
		}
		in.visitor("192.0.2.66", "GET some.example", http.StatusForbidden, "")
		in.visitor(staff, "GET root.example", http.StatusFound, in.origin("root.example")+"/app")
		in.visitor(other, "GET root.example", http.StatusServiceUnavailable, "")
		for _, path := range []string{"/", "/app"} {
			in.expect("root.example", path, http.StatusServiceUnavailable, "page of 503")
		}
		in.visitor(staff, "GET moved.example", http.StatusMovedPermanently, "https://new.example/")
		in.visitor(other, "GET moved.example", http.StatusServiceUnavailable, "")
		// The redirect to HTTPS comes first if some clients are allowed.
		allowed, closed := http.StatusPermanentRedirect, http.StatusPermanentRedirect
		location := "https://secure.example"
		if strings.HasPrefix(in.origin("secure.example"), "https://") {
			allowed, closed, location = http.StatusOK, http.StatusServiceUnavailable, ""
		}
		in.visitor(staff, "GET secure.example", allowed, location)
		in.visitor(other, "GET secure.example", closed, location)
		in.visitor(other, "GET shut.example", http.StatusServiceUnavailable, "")
		in.visitor(staff, "GET wrong.example", http.StatusServiceUnavailable, "")
		in.visitor(other, "GET unused.example", http.StatusOK, "")
	})
}

// TestMaintenanceOfAll checks that the ConfigMap closes all Ingresses except those that set the annotation to false,
// that an Ingress can have its own list of clients, and that the end of maintenance needs no reload.
func TestMaintenanceOfAll(t *testing.T) {
	ip, port := backend(t, "web")
	in := start(t, class+service("web", port, ip)+rule("app", "app.example", "Prefix", "/", "web")+
		annotated("open", "open.example", "web", "k8singress.io/maintenance", "false")+
		annotated("own", "own.example", "web", "k8singress.io/maintenance-allowlist", "203.0.113.0/24"),
		"configmap default/global")
	in.globalKeys(append(proxiesTrusted, "maintenance=true", "maintenance-allowlist=192.0.2.0/24")...)
	const staff, partner, other = "192.0.2.1", "203.0.113.1", "198.51.100.1"
	for _, c := range []struct {
		host, client string
		status       int
	}{
		{"app.example", staff, http.StatusOK},
		{"app.example", partner, http.StatusServiceUnavailable},
		{"app.example", other, http.StatusServiceUnavailable},
		{"open.example", other, http.StatusOK},
		{"own.example", partner, http.StatusOK},
		{"own.example", staff, http.StatusServiceUnavailable},
	} {
		in.visitor(c.client, "GET "+c.host, c.status, "")
	}
	in.globalKeys(append(proxiesTrusted, "maintenance=true", "maintenance-allowlist=office")...)
	in.visitor(staff, "GET app.example", http.StatusServiceUnavailable, "")
	in.visitor(partner, "GET own.example", http.StatusOK, "")
	in.globalKeys(append(proxiesTrusted, "maintenance-allowlist=192.0.2.0/24")...)
	in.visitor(other, "GET app.example", http.StatusOK, "")
	in.globalKeys("maintenance=yes")
	in.expect("app.example", "/", http.StatusServiceUnavailable, "")
	in.neverReloads()
}
