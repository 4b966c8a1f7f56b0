package live

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// failing rejects all requests. The error page is at target.
func failing(t *testing.T, target string, recursive bool) script {
	t.Helper()
	d, err := exchange.NewDirectives(&ir.Directives{Errors: ir.ErrorHandling{
		Pages: []ir.ErrorPage{{Statuses: []int{http.StatusForbidden}, Target: target}}, Recursive: &recursive,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return func(x *exchange.Exchange) (bool, error) {
		x.UseDirectives(d)
		return x.Reject(exchange.Rejection(http.StatusForbidden, "no"))
	}
}

// answering responds with the path of the route and a body, whose status an error page replaces.
func answering(x *exchange.Exchange) (bool, error) {
	return true, x.Respond(http.StatusOK, "text of "+x.Route.Path)
}

// pagesHost has a location with a name, a page and routes that only some clients may use.
func pagesHost(t *testing.T, scripts map[string]script) *Table {
	t.Helper()
	host := routesOf("/open", "/page", "/admin")
	host.Routes = append(host.Routes,
		&document.Route{Path: "@named", Type: string(ir.LocationNamed), Origin: "Ingress/shop/server"},
		&document.Route{Path: "/of-other", Origin: "Ingress/other/x"})
	host.Routes[2].Access = "password"
	return scriptedTable(t, host, scripts)
}

// TestErrorPagesOfPrograms checks which route serves the error page of a request, and with which status.
func TestErrorPagesOfPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		target, request, want string
	}{
		"a page":              {"/page", "GET http://shop.example/open", "403"},
		"a guarded page":      {"/admin/page", "GET http://shop.example/open", "403"},
		"no route":            {"/nowhere", "GET http://shop.example/open", "error 403"},
		"the same route":      {"/open/again", "GET http://shop.example/open", "403"},
		"a name":              {"@named", "GET http://shop.example/open", "403"},
		"no such name":        {"@missing", "GET http://shop.example/open", "error 500"},
		"of other namespaces": {"@named", "GET http://shop.example/of-other", "error 500"},
		"an ambiguous path":   {"@named", "GET http://shop.example/admin/..;/admin", "error 400"},
		"a clean path":        {"@named", "GET http://shop.example/admin/x", "403"},
	} {
		t.Run(name, func(t *testing.T) {
			deny := failing(t, c.target, false)
			table := pagesHost(t, map[string]script{
				"/open": deny, "/of-other": deny, "/page": answering, "@named": answering, "/admin": answering,
			})
			if strings.Contains(c.request, "/admin") {
				table = pagesHost(t, map[string]script{"/admin": deny, "@named": answering})
			}
			got, x, err := ask(t, table, c.request)
			if got != c.want || (err != nil) != strings.HasPrefix(c.want, "error") {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
			if x.Target != strings.TrimPrefix(c.request, "GET http://shop.example") {
				t.Errorf("the logs get the target %q", x.Target)
			}
		})
	}
}

// TestErrorPageCycle checks that a request leads to ten error pages at most.
func TestErrorPageCycle(t *testing.T) {
	for times, want := range map[int]string{10: "403", 11: "error 500"} {
		runs := 0
		again := failing(t, "/open", true)
		table := pagesHost(t, map[string]script{"/open": func(x *exchange.Exchange) (bool, error) {
			if runs++; runs > times {
				return answering(x)
			}
			return again(x)
		}})
		got, _, err := ask(t, table, "GET http://shop.example/open")
		if got != want || runs != 11 || err != nil && !errors.Is(err, errCycle) {
			t.Errorf("%d times: %q after %d runs, %v", times, got, runs, err)
		}
	}
}

// TestErrorPageOfRewrite checks that rewrites and error pages count together, and that a rewrite to a path leaves the
// location with a name.
func TestErrorPageOfRewrite(t *testing.T) {
	runs := 0
	table := pagesHost(t, map[string]script{
		"/open": failing(t, "@named", true), "/page": answering,
		"@named": func(x *exchange.Exchange) (bool, error) {
			if runs++; runs == 3 {
				return rewriteTo("/page")(x)
			}
			return rewriteTo("/open")(x)
		},
	})
	if got, x, err := ask(t, table, "GET http://shop.example/open"); got != "403" || x.Route.Path != "/page" ||
		x.Reroutes != 6 {
		t.Errorf("%q by %s after %d routes, %v", got, x.Route.Path, x.Reroutes, err)
	}
}

// TestErrorPagePassesNothingOn checks that a request without a route for its error page fails as without the page, and
// is not passed to the next Caddy handler.
func TestErrorPagePassesNothingOn(t *testing.T) {
	table := pagesHost(t, map[string]script{"/open": failing(t, "/nowhere", false)})
	x, _ := exchangetest.New(t, "GET http://shop.example/open")
	x.PassesOn = true
	outcome, err := table.Serve(x)
	if got := fmt.Sprint(outcome, exchange.StatusOf(err)); got != "0 403" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestNamedLocationErrors checks that two locations cannot have one name.
func TestNamedLocationErrors(t *testing.T) {
	if err := add(hostOf(t, []string{"location @ @a", "location @ @b"}), "location @", "@a"); err == nil {
		t.Error("there are two locations with one name")
	}
}

// TestNamedLocationIsNoPath checks that no path leads to a location with a name, and that its guards do not make paths
// ambiguous.
func TestNamedLocationIsNoPath(t *testing.T) {
	host := routesOf("/")
	host.Routes = append(host.Routes, &document.Route{Path: "@named", Type: string(ir.LocationNamed),
		Origin: "Ingress/shop/server", Destination: document.Destination{Access: "password"}})
	table := scriptedTable(t, host, nil)
	for _, path := range []string{"/@named", "/x/..;/@named"} {
		if got, _, err := ask(t, table, "GET http://shop.example"+path); got != "200 | Route: /" {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}
