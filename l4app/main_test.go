package l4app

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/goleak"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/certs"
	"github.com/k8singress/k8singress/internal/tls/trust"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

// patience is how long a test waits for an event.
const patience = fixture.Patience

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a set of ports with its endpoints.
type world struct {
	t testing.TB
	Tables
	ports *Ports
	ctx   caddy.Context
}

func newWorld(t testing.TB) *world {
	t.Helper()
	tables := newTables()
	w := &world{t: t, Tables: tables, ports: New(zaptest.NewLogger(t, zaptest.Level(level(t))), tables)}
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	w.ctx = ctx
	t.Cleanup(func() {
		w.ports.Close()
		cancel()
	})
	return w
}

func newTables() Tables {
	all := endpoints.NewTable()
	all.Guard().Configure(reach.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"),
		netip.MustParsePrefix("::1/128")}})
	return Tables{Endpoints: all, Certificates: certs.NewStore(), Trust: trust.NewStore()}
}

// freePort returns a port on which no process listens at the moment.
func freePort(t testing.TB) uint16 {
	t.Helper()
	port, err := strconv.ParseUint(fixture.Port(t), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return uint16(port)
}

func route(protocol ir.Protocol, port uint16, service string) *ir.StreamRoute {
	backend := &ir.Backend{ID: "test/" + service + "/1", Namespace: "test", Service: service, Protocol: protocol}
	return &ir.StreamRoute{
		Protocol: protocol, Port: port, Backends: ir.To(backend),
		Origin: ir.Ref{Kind: "ConfigMap", Namespace: "test", Name: "services"},
	}
}

// set sets the endpoints of a route's backend, and opens or changes its port.
func (w *world) set(r *ir.StreamRoute, addresses ...string) {
	w.t.Helper()
	w.endpoints(r, addresses...)
	if refused := w.ports.Update(w.ctx, one(r)); len(refused) > 0 {
		w.t.Fatalf("refused: %v", refused)
	}
}

func (w *world) endpoints(r *ir.StreamRoute, addresses ...string) {
	list := []ir.Endpoint{}
	for _, address := range addresses {
		list = append(list, ir.Endpoint{Address: address})
	}
	w.Endpoints.Set(r.Backends[0].Backend.ID, list)
}

func (w *world) remove(r *ir.StreamRoute) {
	w.t.Helper()
	w.ports.Update(w.ctx, map[string]*document.Port{portName(r): nil})
}

func one(r *ir.StreamRoute) map[string]*document.Port {
	return map[string]*document.Port{portName(r): Render(r, []string{"127.0.0.1"})}
}

func portName(r *ir.StreamRoute) string { return string(r.Protocol) + "/" + strconv.Itoa(int(r.Port)) }

// dial connects to the port of a route.
func dial(t testing.TB, r *ir.StreamRoute) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout(string(r.Protocol), net.JoinHostPort("127.0.0.1", strconv.Itoa(int(r.Port))), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// backend runs a TCP server on loopback until the test ends, and returns its address.
func backend(t testing.TB, serve func(*net.TCPConn)) string {
	t.Helper()
	listener := fixture.Listen(t)
	fixture.Serve(listener, func(conn net.Conn) { serve(conn.(*net.TCPConn)) })
	return listener.Addr().String()
}

// named starts a backend that sends its name and then echoes what it receives.
func named(t *testing.T, name string) string {
	t.Helper()
	return backend(t, func(conn *net.TCPConn) {
		_, _ = io.WriteString(conn, name)
		_, _ = io.Copy(conn, conn)
	})
}

func expect(t *testing.T, conn io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Fatalf("read %q, %v; want %q", got, err, want)
	}
}

func send(t *testing.T, conn io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

func expectEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	n, err := conn.Read(make([]byte, 1))
	if n > 0 || err == nil || strings.Contains(err.Error(), "timeout") {
		t.Fatalf("read %d bytes, %v; want the end of the connection", n, err)
	}
}

// await waits for a condition.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	fixture.Holds(t, what, condition)
}

func pretty(t *testing.T, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}

// level returns the log level. Benchmarks log only warnings, because they open many connections.
func level(t testing.TB) zapcore.Level {
	if _, ok := t.(*testing.B); ok {
		return zapcore.WarnLevel
	}
	return zapcore.DebugLevel
}
