package live_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// guardedBy returns the settings and the host of a configuration whose route rejects all requests, because a variable
// with this name is true for each of them. A variable that is not defined is false.
func guardedBy(variable string) (*ir.Global, map[string]*document.Host) {
	blocked := ir.Variable{Name: variable, Map: &ir.Map{Source: "$host", Default: "1"}}
	chain := json.RawMessage(fmt.Sprintf(`[{"handle":[
		{"handler":"k8singress_program","steps":[{"if":{"variable":%q,"steps":[{"return":{"status":403}}]}}]},
		{"handler":"static_response","body":"let through"}]}]`, variable))
	return &ir.Global{Variables: []ir.Variable{blocked}}, map[string]*document.Host{"h": hostOf(
		&document.Route{Type: "prefix", Path: "/", Destination: document.Destination{Chain: chain}})}
}

func isRejected(t *testing.T, table *live.Table) bool {
	t.Helper()
	w, outcome, err := ask(table, "h", "/")
	if err != nil {
		t.Errorf("outcome %d, %v", outcome, err)
	}
	return w.Code == http.StatusForbidden
}

// TestRenamedVariable checks that a route never runs without the variable by which it decides, while the variable is
// renamed in the settings and in the routes.
func TestRenamedVariable(t *testing.T) {
	table := newTable(t)
	for _, name := range []string{"old_blocked", "new_blocked"} {
		global, hosts := guardedBy(name)
		table.SetGlobal(global)
		if name != "old_blocked" && !isRejected(t, table) {
			t.Error("the old route ran with the new variables")
		}
		table.Update(hosts)
		if !isRejected(t, table) {
			t.Errorf("the route ran without its variable %s", name)
		}
	}
}

// TestRenamedVariableUnderLoad checks the same for requests that run at the same time.
func TestRenamedVariableUnderLoad(t *testing.T) {
	table := newTable(t)
	change := func(variable string) {
		global, hosts := guardedBy(variable)
		table.SetGlobal(global)
		table.Update(hosts)
	}
	change("a_blocked")
	const requests, clients = 500, 4
	var passed, running atomic.Int64
	var done sync.WaitGroup
	running.Store(clients)
	for range clients {
		done.Go(func() {
			defer running.Add(-1)
			for range requests {
				if !isRejected(t, table) {
					passed.Add(1)
				}
			}
		})
	}
	for i := 0; running.Load() > 0; i++ {
		change([]string{"b_blocked", "a_blocked"}[i%2])
	}
	done.Wait()
	if n := passed.Load(); n > 0 {
		t.Errorf("%d of %d requests were let through", n, requests*clients)
	}
}

// TestVariablesOfGroups checks that a listener group whose hosts do not change gets new variables, too.
func TestVariablesOfGroups(t *testing.T) {
	table := newTable(t)
	global, hosts := guardedBy("blocked")
	table.UpdateGroup("other", hosts)
	table.SetListeners([]live.Listener{{Name: "l", Port: 8080, Group: "other"}})
	table.SetGlobal(global)
	for _, want := range []int{http.StatusOK, http.StatusForbidden} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://h/", nil)
		x := &exchange.Exchange{Request: new(message.Request), Writer: message.NewHTTPWriter(w, r),
			Clients: table.Clients()}
		x.FromHTTP(caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, &caddyhttp.Server{}))
		x.Conn = &message.Conn{Listener: 8080}
		if _, err := table.Serve(x); err != nil || w.Code != want {
			t.Errorf("the status is %d, want %d: %v", w.Code, want, err)
		}
		table.UpdateVariables()
	}
}
