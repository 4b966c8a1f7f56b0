package featuretests

import (
	"net/http"
	"testing"
)

// TestProxyRedirect checks how the redirects of endpoints are rewritten, by HTTP and by FastCGI. The controller's own
// redirects do not change.
func TestProxyRedirect(t *testing.T) {
	answer := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://app.internal/x;y?a=b")
		w.Header().Set("Refresh", "5; URL=http://app.internal/later")
		w.WriteHeader(http.StatusFound)
	}
	plain, plainPort := endpointOf(t, answer)
	application, applicationPort := fastCGI(t, answer)
	for _, c := range []struct{ name, from, to, location, refresh string }{
		{"a text", "http://app.internal/", "https://$host/", "https://a.example/x;y?a=b",
			"5; URL=https://a.example/later"},
		{"an expression", "~*^HTTP://[^/]+(/.*)", "$1", "/x;y?a=b", "5; URL=/later"},
		{"another text", "http://other.internal/", "/", "http://app.internal/x;y?a=b",
			"5; URL=http://app.internal/later"},
		{"off", "off", "/", "http://app.internal/x;y?a=b", "5; URL=http://app.internal/later"},
	} {
		settings := []string{"proxy-redirect-from: " + c.from, "proxy-redirect-to: " + c.to}
		check := func(t *testing.T, in *ingress) {
			got := in.send(http.MethodGet, "/", http.NoBody)
			if location, refresh := got.header.Get("Location"), got.header.Get("Refresh"); location != c.location ||
				refresh != c.refresh {
				t.Errorf("%s: %q and %q, want %q and %q", c.name, location, refresh, c.location, c.refresh)
			}
		}
		t.Run(c.name, func(t *testing.T) {
			inFrontOf(t, plain, plainPort, settings...).byEachVersion(t, check)
			inFrontOf(t, application, applicationPort,
				append(settings, "backend-protocol: FCGI")...).byEachVersion(t, check)
		})
	}
}
