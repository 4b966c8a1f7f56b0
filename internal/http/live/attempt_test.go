package live_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
)

func init() { caddy.RegisterModule(scripted{}) }

// scripted is a handler that runs the script in the request context.
type scripted struct{}

type script func(x *exchange.Exchange) error

type scriptKey struct{}

func (scripted) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_scripted", New: func() caddy.Module { return new(scripted) }}
}

func (scripted) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return live.ChainRunFrom(r.Context()).Apply(r.Context().Value(scriptKey{}).(script), w, r, next)
}

// Apply runs the script, and responds with 200 unless it fails.
func (s script) Apply(x *exchange.Exchange) (responded bool, err error) {
	if err := s(x); err != nil {
		return false, err
	}
	return true, x.Respond(http.StatusOK, "")
}

// TestLastAttemptIsJudged checks that a table concludes the last attempt of a request. There are two endpoints, and an
// endpoint is ejected after its first failure.
func TestLastAttemptIsJudged(t *testing.T) {
	for name, c := range map[string]struct {
		do      script
		ejected bool
	}{
		"responded":   {func(x *exchange.Exchange) error { x.Next(); return nil }, false},
		"bad gateway": {func(x *exchange.Exchange) error { x.Next(); return exchange.Fail(502, nil) }, true},
		"too large":   {func(x *exchange.Exchange) error { x.Next(); return exchange.Fail(413, nil) }, false},
		"panic":       {func(x *exchange.Exchange) error { x.Next(); panic(http.ErrAbortHandler) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			const id = "shop/web/80"
			backends := endpoints.NewTable()
			table := tableWith(t, backends)
			backends.Configure(id, &ir.LoadBalancing{EjectAfter: 1})
			backends.Set(id, []ir.Endpoint{{Address: "a:1"}, {Address: "b:1"}})
			update(t, table, hostOf(&document.Route{
				Type: "prefix", Path: "/", Origin: "Ingress/shop/front",
				Destination: document.Destination{Backend: id,
					Chain: []byte(`[{"handle":[{"handler":"test_scripted"}]}]`)},
			}))
			visit(t, table, c.do)
			seen := map[*balancer.Endpoint]bool{}
			for range 10 {
				choice, _ := backends.Backend(id).Pick(nil, nil)
				seen[choice.Endpoint] = true
				if choice.Endpoint.InFlight() != 0 {
					t.Error("the attempt has not ended")
				}
			}
			if ejected := len(seen) == 1; ejected != c.ejected {
				t.Errorf("ejected: %t, want %t", ejected, c.ejected)
			}
		})
	}
}

// visit serves a request with a script, which may panic.
func visit(t *testing.T, table *live.Table, do script) {
	t.Helper()
	defer func() { _ = recover() }()
	r := httptest.NewRequest(http.MethodGet, "http://shop.example/", nil)
	r = r.WithContext(context.WithValue(t.Context(), scriptKey{}, do))
	w := httptest.NewRecorder()
	_, _ = serve(table, w, caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, &caddyhttp.Server{}))
}
