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
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestShareClient checks that Caddy's variables get the client of the request, without allocating memory if Caddy has
// found the same address.
func TestShareClient(t *testing.T) {
	for name, c := range map[string]struct {
		keys    ir.Clients
		peer    string
		by      any
		want    string
		trusted bool
	}{
		"the same":           {peer: "10.1.1.1:99", by: "10.1.1.1", want: "10.1.1.1"},
		"the same with IPv6": {peer: "[2001:DB8::0:1%eth0]:99", by: "2001:db8::1", want: "2001:db8::1"},
		"a Unix socket":      {peer: "@", by: "", want: ""},
		"the ConfigMap trusts the peer": {keys: ir.Clients{UseForwarded: true}, peer: "10.1.1.1:99", by: "10.1.1.1",
			want: "9.9.9.9", trusted: true},
		"only Caddy trusts the peer": {peer: "10.1.1.1:99", by: "9.9.9.9", want: "10.1.1.1"},
		"another type":               {peer: "10.1.1.1:99", by: []string{"10.1.1.1"}, want: "10.1.1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://h/", nil)
			r.RemoteAddr = c.peer
			r.Header.Set("X-Forwarded-For", "9.9.9.9")
			r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
			x := &exchange.Exchange{Request: new(message.Request), Clients: realip.New(c.keys)}
			x.FromHTTP(r)
			caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, c.by)
			caddyhttp.SetVar(r.Context(), caddyhttp.TrustedProxyVarKey, !c.trusted)
			live.ShareClient(r.Context(), x)
			ip, trusted := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey),
				caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey)
			if ip != c.want || trusted != c.trusted {
				t.Errorf("the client is %v, trusted: %v; want %s, %v", ip, trusted, c.want, c.trusted)
			}
			if n := testing.AllocsPerRun(100, func() { live.ShareClient(r.Context(), x) }); n > 0 {
				t.Errorf("%v allocations for a client that Caddy knows", n)
			}
		})
	}
}
