package live

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
	"github.com/k8singress/k8singress/internal/tls/trust"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
)

// script is a filter that is a function.
type script func(x *exchange.Exchange) (bool, error)

func (s script) Apply(x *exchange.Exchange) (bool, error) { return s(x) }

// respond responds with the path of the route in the field Route.
func respond(x *exchange.Exchange) (bool, error) {
	return true, x.Respond(http.StatusOK, "", message.NewField("Route", x.Route.Path))
}

// scriptedTable returns a table with a host shop.example. scripts holds the only filter of each route by its path.
// Other routes respond with their path.
func scriptedTable(t testing.TB, host *document.Host, scripts map[string]script) *Table {
	t.Helper()
	ctx, err := caddy.ProvisionContext(&caddy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	table := NewTable(endpoints.NewTable(), trust.NewStore())
	if err := table.Adopt(ctx); err != nil {
		t.Fatal(err)
	}
	table.MarkReady()
	t.Cleanup(table.Close)
	for _, r := range host.Routes {
		// The chains must differ, so that the routes do not share them.
		r.Type, r.Chain = cmp.Or(r.Type, "prefix"), fmt.Appendf(nil,
			`[{"handle":[{"handler":"k8singress_response_headers","remove":[%q]}]}]`, "X"+strings.Trim(r.Path, "/"))
	}
	table.Update(map[string]*document.Host{"shop.example": host})
	for _, r := range table.index.Load().find("shop.example").all {
		do := scripts[r.Path]
		if do == nil {
			do = respond
		}
		i := &instance{steps: []step{{filter: do}}, cancel: func() {}, parts: &configDigest{}}
		i.holders.Store(1)
		r.chain.replace(i)
	}
	return table
}

func routesOf(paths ...string) *document.Host {
	host := &document.Host{}
	for _, path := range paths {
		host.Routes = append(host.Routes, &document.Route{Path: path, Origin: "Ingress/shop" + path})
	}
	return host
}

// ask serves a request, and returns the head of the response, or a word for another outcome, and the error.
func ask(t *testing.T, table *Table, head string) (string, *exchange.Exchange, error) {
	t.Helper()
	x, w := exchangetest.New(t, head)
	x.Route = nil
	outcome, err := table.Serve(x)
	switch {
	case err != nil:
		return fmt.Sprintf("error %d", exchange.StatusOf(err)), x, err
	case outcome != Served:
		return fmt.Sprintf("outcome %d", outcome), x, nil
	}
	return w.String(), x, nil
}
