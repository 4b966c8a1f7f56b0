package l4app

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/mholt/caddy-l4/layer4"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/netaddr"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func TestPortsComeAndGoAlone(t *testing.T) {
	w := newWorld(t)
	stays, goes, comes := route(ir.TCP, freePort(t), "a"), route(ir.TCP, freePort(t), "b"),
		route(ir.TCP, freePort(t), "c")
	w.set(stays, named(t, "a"))
	w.set(goes, named(t, "b"))
	open := dial(t, stays)
	expect(t, open, "a")

	w.remove(goes)
	w.set(comes, named(t, "c"))

	expect(t, dial(t, comes), "c")
	send(t, open, "still there")
	expect(t, open, "still there")
	expectRefused(t, goes)
	want := []string{portName(stays), portName(comes)}
	slices.Sort(want)
	if got := w.ports.Names(); !slices.Equal(got, want) {
		t.Errorf("open are %q, want %q", got, want)
	}
}

func expectRefused(t *testing.T, r *ir.StreamRoute) {
	t.Helper()
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(r.Port))))
	if err == nil {
		conn.Close()
		t.Fatalf("port %d takes connections", r.Port)
	}
}

func TestOpenConnectionsOutliveTheirPort(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	w.set(r, named(t, "a"))
	open := dial(t, r)
	expect(t, open, "a")

	w.remove(r)

	expectRefused(t, r)
	send(t, open, "last words")
	expect(t, open, "last words")
	// The port can be opened again while old connections last.
	w.set(r, named(t, "again"))
	expect(t, dial(t, r), "again")
	send(t, open, "more")
	expect(t, open, "more")
}

func TestConnectionsOfARemovedPortEndAfterTheDrainTime(t *testing.T) {
	w := newWorld(t)
	w.ports.SetDrain(10 * time.Millisecond)
	r := route(ir.TCP, freePort(t), "a")
	w.set(r, named(t, "a"))
	open := dial(t, r)
	expect(t, open, "a")
	// A connection with replaced handlers belongs to the port as well.
	w.set(route(ir.TCP, r.Port, "b"), named(t, "b"))
	later := dial(t, r)
	expect(t, later, "b")
	account := w.account(r)

	w.remove(r)

	expectEnd(t, open)
	expectEnd(t, later)
	await(t, "the count of both", func() bool { return account.failed[portClosed].Load() == 2 })
}

// TestReopenedPortKeepsItsConnections checks that connections survive if their port is removed and opened again
// before the drain time ends. A connection of a port that stays closed shows when the drain time has passed.
func TestReopenedPortKeepsItsConnections(t *testing.T) {
	w := newWorld(t)
	w.ports.SetDrain(2 * time.Second)
	r, other := route(ir.TCP, freePort(t), "a"), route(ir.TCP, freePort(t), "b")
	endpoint := named(t, "a")
	w.set(r, endpoint)
	w.set(other, named(t, "b"))
	open, ends := dial(t, r), dial(t, other)
	expect(t, open, "a")
	expect(t, ends, "b")
	for range 2 {
		w.remove(r)
		w.set(r, endpoint)
	}
	w.remove(other)
	expectEnd(t, ends)
	send(t, open, "still there")
	expect(t, open, "still there")
	w.ports.SetDrain(10 * time.Millisecond)
	w.remove(r)
	expectEnd(t, open)
}

func TestChangedPortKeepsItsListener(t *testing.T) {
	w := newWorld(t)
	port := freePort(t)
	before, after := route(ir.TCP, port, "before"), route(ir.TCP, port, "after")
	w.set(before, named(t, "before"))
	w.endpoints(after, named(t, "after"))
	open := dial(t, before)
	expect(t, open, "before")

	var clients sync.WaitGroup
	stop, first := make(chan struct{}), make(chan struct{})
	var once sync.Once
	for range 4 {
		clients.Go(func() { hammer(t, port, stop, func() { once.Do(func() { close(first) }) }) })
	}
	fixture.Receive(t, "the first answer", first)
	for i := range 100 {
		r := []*ir.StreamRoute{after, before}[i%2]
		if refused := w.ports.Update(w.ctx, one(r)); len(refused) > 0 {
			t.Errorf("refused: %v", refused)
		}
	}
	w.set(after, named(t, "after"))
	close(stop)
	clients.Wait()

	expect(t, dial(t, after), "after")
	send(t, open, "still there")
	expect(t, open, "still there")
}

// hammer opens connections one after the other, and requires a response on each.
func hammer(t *testing.T, port uint16, stop <-chan struct{}, answered func()) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		conn, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))), patience)
		if err == nil {
			_ = conn.SetDeadline(time.Now().Add(patience))
			_, err = conn.Read(make([]byte, 1))
			conn.Close()
		}
		if err != nil {
			t.Error(err)
			return
		}
		answered()
	}
}

func TestHeldPortIsRefusedAloneAndTriedAgain(t *testing.T) {
	for name, hold := range map[string]func(string) (any, error){
		"alone":  func(address string) (any, error) { return net.Listen("tcp", address) },
		"shared": listenShared,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			held, free := route(ir.TCP, freePort(t), "held"), route(ir.TCP, freePort(t), "free")
			holder, err := hold(net.JoinHostPort("127.0.0.1", strconv.Itoa(int(held.Port))))
			if err != nil {
				t.Fatal(err)
			}
			w.endpoints(held, named(t, "held"))
			w.endpoints(free, named(t, "free"))
			changes := one(held)
			changes[portName(free)] = Render(free, []string{"127.0.0.1"})

			expectHeld(t, w.ports.Update(w.ctx, changes), held)
			expect(t, dial(t, free), "free")
			expectHeld(t, w.ports.Retry(w.ctx), held)

			if err := holder.(net.Listener).Close(); err != nil {
				t.Fatal(err)
			}
			if refused := w.ports.Retry(w.ctx); len(refused) > 0 {
				t.Fatalf("refused: %v", refused)
			}
			expect(t, dial(t, held), "held")
		})
	}
}

// listenShared listens as Caddy does, so that others can listen on the same address.
func listenShared(address string) (any, error) {
	parsed, err := caddy.ParseNetworkAddress(address)
	if err != nil {
		return nil, err
	}
	return parsed.Listen(context.Background(), 0, net.ListenConfig{})
}

func expectHeld(t *testing.T, refused []Refusal, r *ir.StreamRoute) {
	t.Helper()
	if len(refused) != 1 || refused[0].Name != portName(r) || !errors.Is(refused[0].Err, netaddr.ErrHeld) ||
		refused[0].Origin != r.Origin {
		t.Fatalf("refused are %v, want port %d alone", refused, r.Port)
	}
}

func TestRemovedPortIsNotRetried(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	bad := map[string]*document.Port{portName(r): {Server: json.RawMessage(`{"listen":["tcp/:http"]}`),
		Origin: r.Origin}}
	if refused := w.ports.Update(w.ctx, bad); len(refused) != 1 {
		t.Fatalf("refused: %v", refused)
	}
	w.remove(r)
	if refused := w.ports.Retry(w.ctx); len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
}

func TestRejectedPortIsLeftOutAlone(t *testing.T) {
	for name, server := range map[string]string{
		"not JSON":        `{`,
		"unknown field":   `{"listen":["tcp/127.0.0.1:1"],"listn":[]}`,
		"no address":      `{"routes":[]}`,
		"unknown handler": `{"listen":["tcp/127.0.0.1:1"],"routes":[{"handle":[{"handler":"nothing"}]}]}`,
		"handler refuses": `{"listen":["tcp/127.0.0.1:1"],"routes":[{"handle":[{"handler":"k8singress",` +
			`"backend":"a","proxy_protocol":"v9"}]}]}`,
		"handler panics": `{"listen":["tcp/127.0.0.1:1"],` +
			`"routes":[{"handle":[{"handler":"k8singress_test_panic"}]}]}`,
		"policy": `{"listen":["tcp/127.0.0.1:1"],"routes":[{"handle":[{"handler":"k8singress",` +
			`"backend":"a","policy":{"tries":-1}}]}]}`,
		"field of a policy": `{"listen":["tcp/127.0.0.1:1"],"routes":[{"handle":[{"handler":"k8singress",` +
			`"backend":"a","policy":{"try":1}}]}]}`,
		"network": `{"listen":["tcp/127.0.0.1:1"],` +
			`"routes":[{"handle":[{"handler":"k8singress_proxy_protocol","trusted":["::/999"]}]}]}`,
		"address is none":    `{"listen":["tcp/127.0.0.1:port"]}`,
		"address of a third": `{"listen":["tcp/192.0.2.1:1"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			good := route(ir.TCP, freePort(t), "good")
			w.endpoints(good, named(t, "good"))
			changes := one(good)
			changes["bad"] = &document.Port{Server: json.RawMessage(server)}
			if refused := w.ports.Update(w.ctx, changes); len(refused) != 1 || refused[0].Name != "bad" {
				t.Fatalf("refused: %v", refused)
			}
			expect(t, dial(t, good), "good")
		})
	}
}

// TestRefusedChangeClosesThePort checks that a port is closed, and does not keep its old handlers, if its change is
// rejected.
func TestRefusedChangeClosesThePort(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	w.set(r, named(t, "a"))
	changed := one(r)
	changed[portName(r)].Server = json.RawMessage(
		`{"listen":["tcp/127.0.0.1:1"],"routes":[{"handle":[{"handler":"nothing"}]}]}`)
	if refused := w.ports.Update(w.ctx, changed); len(refused) != 1 {
		t.Fatalf("refused: %v", refused)
	}
	expectRefused(t, r)
}

func TestPortMovesToAnotherAddress(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	w.set(r, named(t, "a"))
	// The port number stays the same, and the new wildcard address includes the old address.
	everywhere := map[string]*document.Port{portName(r): Render(r, nil)}
	if refused := w.ports.Update(w.ctx, everywhere); len(refused) > 0 {
		t.Fatalf("refused: %v", refused)
	}
	expect(t, dial(t, r), "a")
}

func init() { caddy.RegisterModule(panicking{}) }

// panicking is a module that panics when it is provisioned.
type panicking struct{}

func (panicking) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "layer4.handlers.k8singress_test_panic",
		New: func() caddy.Module { return new(panicking) }}
}

func (panicking) Provision(caddy.Context) error { panic("as ever") }

func (panicking) Handle(*layer4.Connection, layer4.Handler) error { return nil }

// TestPortWithoutHandlers checks that a port without handlers closes its connections.
func TestPortWithoutHandlers(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	for _, routes := range []string{`[]`, `[{}]`, `[{"handle":[]}]`} {
		port := one(r)
		port[portName(r)].Server = json.RawMessage(`{"listen":["tcp/127.0.0.1:` + strconv.Itoa(int(r.Port)) +
			`"],"routes":` + routes + `}`)
		if refused := w.ports.Update(w.ctx, port); len(refused) > 0 {
			t.Fatalf("refused: %v", refused)
		}
		expectEnd(t, dial(t, r))
	}
}
