package front_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/netaddr"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func init() { caddy.RegisterModule(new(wrapper)) }

// wrapper is the listener wrapper of a server whose connections the front serves.
type wrapper struct{ binding *front.Binding }

func (*wrapper) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.listeners.fronted", New: func() caddy.Module { return new(wrapper) }}
}

func (w *wrapper) Provision(ctx caddy.Context) error {
	w.binding = &front.Binding{
		Context: ctx, Server: ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server), Admit: admit,
		ClientLimits: clientLimits, Clients: clients,
	}
	if h := hooks.Load(); h != nil {
		w.binding.Answer = h.answer
		w.binding.BeforeTLS, w.binding.AfterTLS = h.beforeTLS, h.afterTLS
	}
	front.Process().Prepare(w.binding)
	return nil
}

// hook changes how the servers of a test serve. Nil fields change nothing.
type hook struct {
	admit  func(net.Conn) net.Conn
	limits func()
	answer front.Answer
	// beforeTLS and afterTLS are listener wrappers.
	beforeTLS, afterTLS []caddy.ListenerWrapper
}

// hooks is the hook of the running test. admit and limits are used at once, the others for configurations that are
// loaded later.
var hooks atomic.Pointer[hook]

func admit(conn net.Conn) net.Conn {
	if h := hooks.Load(); h != nil && h.admit != nil {
		return h.admit(conn)
	}
	return conn
}

// noProxy is the policy of a ConfigMap that names no proxy.
var noProxy = realip.New(ir.Clients{})

func clients() *realip.Policy { return noProxy }

// noLimits are the limits of a ConfigMap that sets none.
var noLimits ir.ClientConnections

func clientLimits() *ir.ClientConnections {
	if h := hooks.Load(); h != nil && h.limits != nil {
		h.limits()
	}
	return &noLimits
}

func (w *wrapper) Cleanup() error {
	w.binding.Forget()
	return nil
}

func (w *wrapper) WrapListener(l net.Listener) net.Listener { return w.binding.Wrap(l) }

// server is one server of a configuration. It responds with a fixed word.
type server struct {
	listen, word string
	more         map[string]any
}

func fronted(listen, word string) server {
	return server{listen, word, map[string]any{"listener_wrappers": []any{map[string]any{"wrapper": "fronted"}}}}
}

// frontedWithTLS returns a server with TLS that responds with "two".
func frontedWithTLS(listen string) server {
	s := fronted(listen, "two")
	s.more["tls_connection_policies"] = []any{map[string]any{}}
	s.more["listener_wrappers"] = []any{map[string]any{"wrapper": "fronted"}, map[string]any{"wrapper": "tls"}}
	return s
}

// keys returns the configuration of the app tls with a certificate for the name h.
func keys(t *testing.T) string {
	t.Helper()
	own := fixture.Certificate(t, "h")
	return fmt.Sprintf(`{"certificates":{"load_pem":[{"certificate":%q,"key":%q}]}}`, own.PEM(), own.KeyPEM())
}

// load loads a configuration with the given servers, by name, and the app tls.
func load(servers map[string]server, tls string) error {
	all := map[string]any{}
	for name, s := range servers {
		all[name] = map[string]any{
			"listen": []string{s.listen}, "automatic_https": map[string]any{"disable": true},
			"routes": []any{map[string]any{"handle": []any{map[string]any{"handler": "static_response",
				"body": s.word}}}},
		}
		for key, value := range s.more {
			all[name].(map[string]any)[key] = value
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return caddy.Load(fmt.Appendf(nil, `{"admin":{"disabled":true},"apps":{"tls":%s,"http":{"servers":%s}}}`,
		tls, text), true)
}

func start(t *testing.T, servers map[string]server) {
	t.Helper()
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := load(servers, "{}"); err != nil {
		t.Fatal(err)
	}
}

// client is an HTTP/1.1 connection.
type client struct {
	net.Conn
	*bufio.Reader
}

func dial(t *testing.T, network, address string) *client {
	t.Helper()
	conn, err := net.DialTimeout(network, address, fixture.Patience)
	if err != nil {
		t.Fatal(err)
	}
	return talk(t, conn)
}

func talk(t *testing.T, conn net.Conn) *client {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(fixture.Patience)); err != nil {
		t.Fatal(err)
	}
	return &client{conn, bufio.NewReader(conn)}
}

// expectResponse sends a request and checks the response. It reports whether the response ends the connection.
func (c *client) expectResponse(t *testing.T, want string) (last bool) {
	t.Helper()
	if _, err := io.WriteString(c.Conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(c.Reader, nil)
	if err != nil {
		t.Fatalf("want %q: %v", want, err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != want {
		t.Errorf("the answer is %q, %v, want %q", text, err, want)
	}
	return response.Close
}

// ends waits until the server has closed the connection.
func (c *client) ends(t *testing.T) {
	t.Helper()
	if rest, err := io.ReadAll(c.Reader); err != nil || len(rest) > 0 {
		t.Errorf("it does not end: %q, %v", rest, err)
	}
}

// TestConnectionsOutliveConfigurations checks that connections stay open across reloads, on each network and on a port
// range. Each test uses its own address: at an address that a configuration is still leaving, a new connection may be
// one of its last.
func TestConnectionsOutliveConfigurations(t *testing.T) {
	for name, listen := range map[string]func(address, port string) string{
		"address": func(address, _ string) string { return address },
		"network": func(address, _ string) string { return "tcp4/" + address },
		"range":   func(address, port string) string { return address + "-" + port },
	} {
		t.Run(name, func(t *testing.T) {
			address := fixture.Address(t)
			_, port, _ := net.SplitHostPort(address)
			outlives(t, listen(address, port), "tcp", address)
		})
	}
	t.Run("unix", func(t *testing.T) {
		socket := filepath.Join(t.TempDir(), "sock")
		outlives(t, "unix/"+socket, "unix", socket)
	})
}

// outlives loads several configurations and checks that a connection stays open.
func outlives(t *testing.T, listen, network, address string) {
	start(t, map[string]server{"one": fronted(listen, "0")})
	kept := dial(t, network, address)
	kept.expectResponse(t, "0")
	for i := range 5 {
		word := fmt.Sprint(i)
		if err := load(map[string]server{"one": fronted(listen, word)}, "{}"); err != nil {
			t.Fatal(err)
		}
		if last := kept.expectResponse(t, word); last {
			t.Fatal("the server asks for another connection")
		}
		dial(t, network, address).expectResponse(t, word)
	}
}

// TestRemovedServers checks that connections of a removed server get one more response.
func TestRemovedServers(t *testing.T) {
	first, second := fixture.Address(t), fixture.Address(t)
	start(t, map[string]server{"one": fronted(first, "one"), "two": fronted(second, "two")})
	idle, stays := dial(t, "tcp", second), dial(t, "tcp", first)
	idle.expectResponse(t, "two")
	stays.expectResponse(t, "one")
	if err := load(map[string]server{"one": fronted(first, "one")}, "{}"); err != nil {
		t.Fatal(err)
	}
	idle.ends(t)
	if last := stays.expectResponse(t, "one"); last {
		t.Error("the other server's connection ends")
	}
	fixture.Eventually(t, "no listener", func() error {
		if conn, err := net.Dial("tcp", second); err == nil {
			_ = conn.Close()
			return fmt.Errorf("%s accepts", second)
		}
		return nil
	})
	if err := load(map[string]server{"one": fronted(first, "one"), "two": fronted(second, "again")}, "{}"); err != nil {
		t.Fatal(err)
	}
	dial(t, "tcp", second).expectResponse(t, "again")
}

// TestRefused checks that a configuration that the front cannot serve is rejected and changes nothing.
func TestRefused(t *testing.T) {
	address, other := fixture.Address(t), fixture.Address(t)
	start(t, map[string]server{"one": fronted(address, "one")})
	kept := dial(t, "tcp", address)
	for name, servers := range map[string]map[string]server{
		"the same address":    {"one": fronted(address, "1"), "two": {listen: address, word: "2"}},
		"without the wrapper": {"one": fronted(address, "1"), "two": {listen: "k8singress/" + other, word: "2"}},
	} {
		if err := load(servers, "{}"); err == nil {
			t.Errorf("%s: it is not refused", name)
		}
		kept.expectResponse(t, "one")
		// Caddy closes the listener of a rejected server in the background, and it may accept connections until then.
		fixture.Eventually(t, name, func() error { return responds(address, "one") })
	}
}

// responds returns an error unless a new connection to address gets the response want.
func responds(address, want string) error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + address)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != want {
		return fmt.Errorf("the answer is %q, %w, want %q", text, err, want)
	}
	return nil
}

// TestOpenAndClose checks that an address can be opened in addition to the server's own, and is closed with the server.
func TestOpenAndClose(t *testing.T) {
	address := fixture.Address(t)
	_, port, _ := net.SplitHostPort(fixture.Address(t))
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	p := front.Process()
	if _, err := p.Addresses("one", uint16(number)); err == nil {
		t.Error("there are addresses beside those of no server")
	}
	start(t, map[string]server{"one": fronted(address, "a")})
	all, err := p.Addresses("one", uint16(number))
	if err != nil || len(all) != 1 || all[0].String() != "127.0.0.1:"+port {
		t.Fatalf("the addresses are %v, %v", all, err)
	}
	more := all[0].JoinHostPort(0)
	for _, word := range []string{"a", "b"} {
		opened, err := p.Open(t.Context(), all[0], "one")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Open(t.Context(), all[0], "one"); err == nil {
			t.Error("it is opened twice")
		}
		kept, stays := dial(t, "tcp", more), dial(t, "tcp", address)
		kept.expectResponse(t, word)
		if err := load(map[string]server{"one": fronted(address, "b")}, "{}"); err != nil {
			t.Fatal(err)
		}
		kept.expectResponse(t, "b")
		opened.Close()
		opened.Close()
		kept.ends(t)
		if last := stays.expectResponse(t, "b"); last || opened.IsOpen() {
			t.Errorf("another address ends: %v, and it is open: %v", last, opened.IsOpen())
		}
	}
	opened, err := p.Open(t.Context(), all[0], "one")
	if err != nil {
		t.Fatal(err)
	}
	kept := dial(t, "tcp", more)
	kept.expectResponse(t, "b")
	if err := load(map[string]server{"two": fronted(address, "c")}, "{}"); err != nil {
		t.Fatal(err)
	}
	kept.ends(t)
	if opened.IsOpen() {
		t.Error("it is open without the server")
	}
}

// TestOpenAddressInUse checks that Open does not share an address that another listener uses.
func TestOpenAddressInUse(t *testing.T) {
	held, err := net.Listen("tcp", fixture.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	start(t, map[string]server{"one": fronted(fixture.Address(t), "a")})
	all, err := front.Process().Addresses("one", uint16(held.Addr().(*net.TCPAddr).Port))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := front.Process().Open(t.Context(), all[0], "one"); !errors.Is(err, netaddr.ErrHeld) {
		t.Errorf("the error is %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	opened, err := front.Process().Open(t.Context(), all[0], "one")
	if err != nil {
		t.Fatal(err)
	}
	dial(t, "tcp", all[0].JoinHostPort(0)).expectResponse(t, "a")
	opened.Close()
}
