package l4app

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

func TestRender(t *testing.T) {
	proxied := route(ir.TCP, 5432, "db")
	proxied.AcceptProxy, proxied.SendProxy = true, ir.ProxyV1
	datagrams := route(ir.UDP, 53, "dns")
	datagrams.AcceptProxy, datagrams.SendProxy = true, ir.ProxyV1
	all := route(ir.TCP, 5432, "db")
	all.AcceptProxy, all.Trusted, all.SendProxy = true, []string{"192.0.2.0/24"}, ir.ProxyV2
	all.Policy = ir.StreamPolicy{
		IdleTimeout: time.Hour, ConnectTimeout: time.Second, Tries: 2, TriesTimeout: time.Minute, MaxConnections: 100,
	}
	all.BackendTLS = &ir.BackendTLS{Secret: ir.Name{Namespace: "test", Name: "ca"}, Verify: true, Depth: 1,
		Name: "db.test", SendName: true}
	private, issued := route(ir.TCP, 5432, "db"), route(ir.TCP, 5433, "db")
	private.TLS, private.AcceptProxy = &ir.StreamTLS{Secret: ir.Name{Namespace: "shop", Name: "db"}}, true
	issued.TLS = &ir.StreamTLS{Host: "{env.HOME}.example"}
	private.Chains = []string{"office", "slow"}
	several := route(ir.TCP, 5432, "db")
	several.Backends = append(several.Backends,
		ir.WeightedBackend{Backend: &ir.Backend{ID: "test/next/1"}, Weight: 3, Fallback: true})
	odd := route(ir.TCP, 1, `{env.HOME}"`)
	for name, c := range map[string]struct {
		route *ir.StreamRoute
		bind  []string
	}{
		"tcp":          {route(ir.TCP, 5432, "db"), nil},
		"tcp-bind":     {route(ir.TCP, 5432, "db"), []string{"127.0.0.1", "::1"}},
		"tcp-proxy":    {proxied, nil},
		"tcp-all":      {all, nil},
		"tcp-tls":      {private, nil},
		"tcp-tls-host": {issued, nil},
		"tcp-split":    {several, nil},
		"udp":          {datagrams, []string{"127.0.0.1"}},
		"placeholders": {odd, nil},
	} {
		t.Run(name, func(t *testing.T) {
			file := "testdata/" + name + ".json"
			got := pretty(t, Render(c.route, c.bind))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
