package front_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/k8singress/k8singress/internal/fixture"
	"github.com/k8singress/k8singress/internal/front"
)

func init() { caddy.RegisterModule(new(wrapper)) }

// wrapper is the listener wrapper of a server whose connections are served by the front.
type wrapper struct{ serving *front.Serving }

func (*wrapper) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.listeners.fronted", New: func() caddy.Module { return new(wrapper) }}
}

func (w *wrapper) Provision(ctx caddy.Context) error {
	w.serving = &front.Serving{
		Context: ctx, Server: ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server), Admit: func(c net.Conn) net.Conn { return c },
	}
	front.Process().Prepare(w.serving)
	return nil
}

func (w *wrapper) Cleanup() error {
	w.serving.Forget()
	return nil
}

func (w *wrapper) WrapListener(l net.Listener) net.Listener { return w.serving.Wrap(l) }

// server is one of a configuration, which answers with a word.
type server struct {
	listen, word string
	more         map[string]any
}

func fronted(listen, word string) server {
	return server{listen, word, map[string]any{"listener_wrappers": []any{map[string]any{"wrapper": "fronted"}}}}
}

// load loads a configuration with servers by name, and the app tls.
func load(servers map[string]server, tls string) error {
	all := map[string]any{}
	for name, s := range servers {
		all[name] = map[string]any{
			"listen": []string{s.listen}, "automatic_https": map[string]any{"disable": true},
			"routes": []any{map[string]any{"handle": []any{map[string]any{"handler": "static_response", "body": s.word}}}},
		}
		for key, value := range s.more {
			all[name].(map[string]any)[key] = value
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return caddy.Load(fmt.Appendf(nil, `{"admin":{"disabled":true},"apps":{"tls":%s,"http":{"servers":%s}}}`, tls, text), true)
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

// client is a connection of HTTP/1.1.
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

// says asks, and compares the answer. It returns whether that ends the connection.
func (c *client) says(t *testing.T, want string) (last bool) {
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

// ends waits for the end of the connection.
func (c *client) ends(t *testing.T) {
	t.Helper()
	if rest, err := io.ReadAll(c.Reader); err != nil || len(rest) > 0 {
		t.Errorf("it does not end: %q, %v", rest, err)
	}
}

// A connection stays over configurations, whatever the network, and so does one of a range of ports.
func TestConnectionsOutliveConfigurations(t *testing.T) {
	address := fixture.Address(t)
	_, port, _ := net.SplitHostPort(address)
	socket := filepath.Join(t.TempDir(), "sock")
	for listen, at := range map[string][2]string{
		address: {"tcp", address}, "tcp4/" + address: {"tcp", address}, address + "-" + port: {"tcp", address}, "unix/" + socket: {"unix", socket},
	} {
		t.Run(listen, func(t *testing.T) {
			start(t, map[string]server{"one": fronted(listen, "0")})
			kept := dial(t, at[0], at[1])
			kept.says(t, "0")
			for i := range 5 {
				word := fmt.Sprint(i)
				if err := load(map[string]server{"one": fronted(listen, word)}, "{}"); err != nil {
					t.Fatal(err)
				}
				if last := kept.says(t, word); last {
					t.Fatal("the server asks for another connection")
				}
				dial(t, at[0], at[1]).says(t, word)
			}
		})
	}
}

// Connections of a server that has gone are answered once more.
func TestServersThatGo(t *testing.T) {
	first, second := fixture.Address(t), fixture.Address(t)
	start(t, map[string]server{"one": fronted(first, "one"), "two": fronted(second, "two")})
	idle, stays := dial(t, "tcp", second), dial(t, "tcp", first)
	idle.says(t, "two")
	stays.says(t, "one")
	if err := load(map[string]server{"one": fronted(first, "one")}, "{}"); err != nil {
		t.Fatal(err)
	}
	idle.ends(t)
	if last := stays.says(t, "one"); last {
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
	dial(t, "tcp", second).says(t, "again")
}

// What the front cannot serve is refused, and changes nothing.
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
		kept.says(t, "one")
		dial(t, "tcp", address).says(t, "one")
	}
}

// An address may be opened beside those of a server, and ends with it.
func TestOpenAndClose(t *testing.T) {
	address, more := fixture.Address(t), fixture.Address(t)
	p := front.Process()
	if err := p.Open(t.Context(), more, "one"); err == nil {
		t.Error("it is opened for no server")
	}
	start(t, map[string]server{"one": fronted(address, "a")})
	for _, word := range []string{"a", "b"} {
		if err := p.Open(t.Context(), more, "one"); err != nil {
			t.Fatal(err)
		}
		if err := p.Open(t.Context(), more, "one"); err == nil {
			t.Error("it is opened twice")
		}
		kept := dial(t, "tcp", more)
		kept.says(t, word)
		if err := load(map[string]server{"one": fronted(address, "b")}, "{}"); err != nil {
			t.Fatal(err)
		}
		kept.says(t, "b")
		if err := p.Close(more); err != nil {
			t.Fatal(err)
		}
		kept.says(t, "b")
	}
	if err := p.Close(more); err == nil {
		t.Error("it is closed twice")
	}
	if err := p.Open(t.Context(), more, "one"); err != nil {
		t.Fatal(err)
	}
	kept := dial(t, "tcp", more)
	kept.says(t, "b")
	if err := load(map[string]server{"two": fronted(address, "c")}, "{}"); err != nil {
		t.Fatal(err)
	}
	kept.ends(t)
}
