package featuretests

import (
	"net/http"
	"strings"
	"testing"
)

// TestRedirects: the answer is the URL of the annotation and nothing of the request, before the redirect to HTTPS and whatever keeps
// clients out, also where no endpoint is there.
func TestRedirects(t *testing.T) {
	in := start(t, class+service("none", "80")+
		annotated("moved", "moved.example", "none", "permanent-redirect", "https://www.example.com/new?a=b", "force-ssl-redirect", "true",
			"allowlist-source-range", "192.0.2.1")+
		annotated("code", "code.example", "none", "permanent-redirect", "http://www.example.com", "permanent-redirect-code", "308")+
		annotated("soon", "soon.example", "none", "permanent-redirect", "https://a.example", "temporal-redirect", "https://b.example/x"))
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, c := range []struct {
			host, location string
			status         int
		}{
			{"moved.example", "https://www.example.com/new?a=b", http.StatusMovedPermanently},
			{"code.example", "http://www.example.com", http.StatusPermanentRedirect},
			{"soon.example", "https://b.example/x", http.StatusFound},
		} {
			got := in.sendBy(in.client, in.origin(c.host)+"/some/path?q=1", http.MethodPost, strings.NewReader("body"))
			if got.status != c.status || got.header.Get("Location") != c.location {
				t.Errorf("%s: %d %q, want %d %q", c.host, got.status, got.header.Get("Location"), c.status, c.location)
			}
		}
	})
}
