package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

func init() { caddy.RegisterModule(configured{}) }

// configuration is the part of the Caddy configuration that the handler configured uses. If it is empty, Provision
// fails.
var configuration atomic.Value

// configured is an endless handler that depends on the Caddy configuration.
type configured struct{ endless }

func (configured) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_configured", New: func() caddy.Module { return new(configured) }}
}

func (*configured) Provision(ctx caddy.Context) error {
	says := configuration.Load().(string)
	if says == "" {
		return errors.New("the configuration is without it")
	}
	live.RecordConfig(ctx, []byte(says))
	return nil
}

var _ caddyhttp.MiddlewareHandler = (*configured)(nil)

// adopt provisions the table's chains under a new Caddy configuration.
func adopt(t *testing.T, table *live.Table, says string) error {
	t.Helper()
	configuration.Store(says)
	ctx, err := caddy.ProvisionContext(&caddy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx.Context = context.WithoutCancel(ctx.Context)
	return table.Adopt(ctx)
}

func guarded(path, access string) *document.Route {
	r := endlessRoute(path)
	r.Access = access
	return r
}

func quick(t *testing.T) *live.Table {
	table := newTable(t)
	table.SetGlobal(&ir.Global{Drain: time.Millisecond})
	return table
}

var upgrade = http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}

func goesOn(t *testing.T, stream <-chan struct{}, otherwise string) {
	t.Helper()
	select {
	case <-stream:
		t.Fatal(otherwise)
	default:
	}
}

// TestStreamsEndWhenOthersGetIn checks that a stream ends when its route accepts other clients, and not after any other
// change. Each change also ends a stream of another route, so that the test waits long enough for the stream that must
// stay open.
func TestStreamsEndWhenOthersGetIn(t *testing.T) {
	closed := guarded("/", "one")
	closed.Chain = json.RawMessage(`[{"handle":[{"handler":"no_such"}]}]`)
	unrendered := guarded("/", "one")
	unrendered.Chain, unrendered.Refused = nil, "odd"
	for name, next := range map[string]*document.Route{
		"a guard comes": guarded("/", "two"), "all guards go": guarded("/", ""), "a chain is refused": closed,
		"no chain": unrendered,
	} {
		t.Run(name, func(t *testing.T) {
			table := quick(t)
			update(t, table, hostOf(guarded("/", "one"), guarded("/other", "")))
			stream, other := open(t, table, "/", upgrade), open(t, table, "/other", upgrade)

			same := guarded("/", "one")
			same.Chain = json.RawMessage(`[{"handle":[{"handler":"headers"},{"handler":"test_endless"}]}]`)
			update(t, table, hostOf(same))
			await(t, other, "the stream of a route that has gone goes on")
			goesOn(t, stream, "a change that lets in the same clients ends their streams")

			table.Update(map[string]*document.Host{"shop.example": hostOf(next)})
			await(t, stream, "the stream goes on")
		})
	}
}

// TestStreamsOfAnotherConfiguration checks that a stream ends when its chain uses a different part of the Caddy
// configuration.
func TestStreamsOfAnotherConfiguration(t *testing.T) {
	table := quick(t)
	if err := adopt(t, table, "one"); err != nil {
		t.Fatal(err)
	}
	of := endlessRoute("/")
	of.Chain = json.RawMessage(`[{"handle":[{"handler":"test_configured"}]}]`)
	update(t, table, hostOf(of, guarded("/probe", "")))
	stream := open(t, table, "/", upgrade)
	// later waits until the streams that the last configuration ends have ended.
	later := func() {
		probe := open(t, table, "/probe", upgrade)
		update(t, table, hostOf(of))
		await(t, probe, "the stream of a route that has gone goes on")
		update(t, table, hostOf(of, guarded("/probe", "")))
	}
	if err := adopt(t, table, "one"); err != nil {
		t.Fatal(err)
	}
	later()
	goesOn(t, stream, "an equal configuration ends a stream")
	if err := adopt(t, table, ""); err == nil {
		t.Fatal("the configuration is accepted")
	}
	later()
	goesOn(t, stream, "a stream ends although its chain goes on as it was")
	if err := adopt(t, table, "two"); err != nil {
		t.Fatal(err)
	}
	young := open(t, table, "/", upgrade)
	await(t, stream, "the stream goes on under another configuration")
	goesOn(t, young, "a stream of the new configuration ends")
	update(t, table, nil)
	await(t, young, "the stream of a host that has gone goes on")
}

// gated is a host whose chain is rejected if configuration is empty.
func gated() *document.Host {
	return hostOf(&document.Route{Type: "prefix", Path: "/", Destination: document.Destination{Chain: json.RawMessage(
		`[{"handle":[{"handler":"test_gate"},{"handler":"static_response","body":"open"}]}]`)}})
}

// TestInvalidServerName checks that a route is closed if the name of its endpoints is not a valid template.
func TestInvalidServerName(t *testing.T) {
	table := quick(t)
	table.Update(map[string]*document.Host{"a": hostOf(&document.Route{Type: "prefix", Path: "/",
		Destination: document.Destination{TLS: &ir.BackendTLS{Name: "a.$"}}})})
	if got := status(t, table, "a", "/"); got != http.StatusServiceUnavailable {
		t.Errorf("the route answers %d", got)
	}
	if got := table.Refused(); len(got) != 1 || !strings.Contains(got[0].Err.Error(), "server name") {
		t.Errorf("refused %+v", got)
	}
	table.Update(map[string]*document.Host{"a": nil})
}

// TestRejectedChainIsRepaired checks that a new Caddy configuration opens the routes whose chain was rejected before.
func TestRejectedChainIsRepaired(t *testing.T) {
	table := quick(t)
	configuration.Store("")
	table.Update(map[string]*document.Host{"a": gated(), "b": gated()})
	if got := table.Refused(); len(got) != 2 || got[0].Host != "a" || got[1].Host != "b" ||
		!strings.Contains(got[0].Err.Error(), "without it") {
		t.Fatalf("refused %+v", got)
	}
	if got := status(t, table, "a", "/"); got != http.StatusServiceUnavailable {
		t.Fatalf("a refused chain answers %d", got)
	}
	if err := adopt(t, table, ""); err == nil || len(table.Refused()) != 2 {
		t.Fatalf("error %v, refused %+v", err, table.Refused())
	}
	if err := adopt(t, table, "two"); err != nil || len(table.Refused()) != 0 {
		t.Fatalf("error %v, refused %+v", err, table.Refused())
	}
	for _, host := range []string{"a", "b"} {
		if got := get(t, table, host, "/"); got != "open" {
			t.Errorf("%s answers %q after it was mended", host, got)
		}
	}
}

// TestRefusedChainIsTriedAgain checks that an update of one host provisions a rejected chain again for all hosts, and
// that no chain is left after the hosts are removed.
func TestRefusedChainIsTriedAgain(t *testing.T) {
	table := quick(t)
	configuration.Store("")
	table.Update(map[string]*document.Host{"a": gated(), "b": gated()})
	configuration.Store("three")
	table.Update(map[string]*document.Host{"a": gated()})
	if got := get(t, table, "b", "/"); got != "open" || len(table.Refused()) != 0 {
		t.Errorf("it answers %q, refused %+v", got, table.Refused())
	}
	table.Update(map[string]*document.Host{"a": nil, "b": nil})
	if n := table.Chains(); n != 0 {
		t.Errorf("%d chains are left", n)
	}
}

func init() { caddy.RegisterModule(gate{}) }

// gate calls the next handler. Like configured, it fails in Provision if configuration is empty.
type gate struct{ configured }

func (gate) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_gate", New: func() caddy.Module { return new(gate) }}
}

func (*gate) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return next.ServeHTTP(w, r)
}
