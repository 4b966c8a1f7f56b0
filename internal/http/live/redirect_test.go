package live_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestRedirectOfOtherPaths checks that a host redirects requests that match no route, unless they are passed to the
// next Caddy handler. Routes have their own redirects.
func TestRedirectOfOtherPaths(t *testing.T) {
	table, redirecting := newTable(t), hostOf(route("exact", "/app", "app"))
	redirecting.HTTPSRedirect = &ir.HTTPSRedirect{Status: http.StatusPermanentRedirect}
	table.Update(map[string]*document.Host{"a": redirecting, "b": hostOf(route("exact", "/app", "app"))})
	for _, c := range []struct {
		url, location string
		passesOn      bool
		outcome       live.Outcome
	}{
		{"http://a/other/?q=1", "https://a/other/?q=1", false, live.Served},
		{"http://a/other/", "https://a/other", false, live.Served},
		{"http://a/app", "", false, live.Served},
		{"http://a/other/", "", true, live.NoHost},
		{"http://b/other/", "", false, live.NoHost},
		{"https://a/other/", "", false, live.NoHost},
	} {
		r, w := httptest.NewRequest(http.MethodGet, c.url, nil), httptest.NewRecorder()
		r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, &caddyhttp.Server{})
		x := &exchange.Exchange{Request: new(message.Request), Writer: message.NewHTTPWriter(w, r),
			Clients: table.Clients()}
		x.PassesOn = c.passesOn
		x.FromHTTP(r)
		outcome, err := table.Serve(x)
		if got := w.Header().Get("Location"); err != nil || outcome != c.outcome || got != c.location {
			t.Errorf("%s: outcome %d, %q, %v, want %d, %q", c.url, outcome, got, err, c.outcome, c.location)
		}
	}
}
