package l4app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// load runs a Caddy configuration with these apps, each after a comma, and returns the context with which the ports are
// adopted.
func (w *world) load(apps string) caddy.Context {
	w.t.Helper()
	config := `{"admin":{"disabled":true,"config":{"persist":false}},"apps":{"tls":{"disable_storage_clean":true}` +
		apps + `}}`
	if err := caddy.Load([]byte(config), true); err != nil {
		w.t.Fatal(err)
	}
	return caddy.ActiveContext()
}

// TestConfigurationGetsItsPorts checks that a port is closed and reported when a new Caddy configuration listens on it,
// and is opened again when no configuration uses it any more. Caddy itself would let both listen.
func TestConfigurationGetsItsPorts(t *testing.T) {
	for name, server := range map[string]string{
		"http":   `,"http":{"servers":{"mine":{"listen":[":%d"],"automatic_https":{"disable":true}}}}`,
		"layer4": `,"layer4":{"servers":{"mine":{"listen":["tcp/127.0.0.1:%d"]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			t.Cleanup(func() {
				if err := caddy.Stop(); err != nil {
					t.Error(err)
				}
			})
			r, other := route(ir.TCP, freePort(t), "a"), route(ir.TCP, freePort(t), "b")
			datagrams := route(ir.UDP, r.Port, "c")
			w.set(r, named(t, "a"))
			w.set(other, named(t, "b"))
			w.set(datagrams)
			open := dial(t, r)
			expect(t, open, "a")

			w.ctx = w.load(fmt.Sprintf(server, r.Port))

			expectTaken(t, w.ports.Adopt(w.ctx, nil), r, name+" server mine")
			expectTaken(t, w.ports.Retry(w.ctx), r, name+" server mine")
			expectTaken(t, w.ports.Update(w.ctx, one(r)), r, name+" server mine")
			send(t, open, "still there")
			expect(t, open, "still there")
			expect(t, dial(t, other), "b")
			if got := w.ports.Names(); len(got) != 2 {
				t.Errorf("open are %q, want all but one", got)
			}

			w.ctx = w.load("")
			// Caddy may close the listener of the old server later.
			refused := append(w.ports.Adopt(w.ctx, nil), w.ports.Retry(w.ctx)...)
			for begin := time.Now(); len(refused) > 0; refused = w.ports.Retry(w.ctx) {
				if time.Since(begin) > patience {
					t.Fatalf("refused: %v", refused)
				}
			}
			expect(t, dial(t, r), "a")
		})
	}
}

func expectTaken(t *testing.T, refused []Refusal, r *ir.StreamRoute, by string) {
	t.Helper()
	if len(refused) != 1 || refused[0].Name != portName(r) || refused[0].Origin != r.Origin ||
		!strings.Contains(refused[0].Err.Error(), "used by the "+by) {
		t.Fatalf("refused are %v, want port %d, used by the %s", refused, r.Port, by)
	}
}

func TestOverlap(t *testing.T) {
	for _, test := range []struct {
		port, server string
		http3, want  bool
	}{
		{port: "tcp/:5000", server: ":5000", want: true},
		{port: "tcp/:5000", server: "127.0.0.1:5000", want: true},
		{port: "tcp/127.0.0.1:5000", server: "0.0.0.0:5000", want: true},
		{port: "tcp/127.0.0.1:5000", server: "tcp4/:4000-6000", want: true},
		{port: "tcp/[::1]:5000", server: "[0::1]:5000", want: true},
		{port: "udp/:5000", server: ":5000", http3: true, want: true},
		{port: "tcp/:5000", server: ":5001"},
		{port: "tcp/127.0.0.1:5000", server: "127.0.0.2:5000"},
		{port: "udp/:5000", server: ":5000"},
		{port: "tcp/:5000", server: "udp/:5000", http3: true},
		{port: "tcp/:5000", server: "unix//run/a.sock"},
		{port: "tcp/:5000", server: "{http.nothing}"},
	} {
		t.Run(test.port+" and "+test.server, func(t *testing.T) {
			ports := &Ports{taken: appendTaken(nil, "server", []string{test.server}, test.http3)}
			if err := ports.check([]string{test.port}); (err != nil) != test.want {
				t.Errorf("%v, want an error: %t", err, test.want)
			}
		})
	}
}
