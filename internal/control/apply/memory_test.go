package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap/zaptest"

	"github.com/k8singress/k8singress/internal/control/apply"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
)

// TestGoneHostsLeaveNoMemory checks that hosts that are gone leave no memory in the tables that serve requests. Each
// host has its own backend with external names or endpoints, its own handlers, and its own Secrets.
func TestGoneHostsLeaveNoMemory(t *testing.T) {
	ctx, err := caddy.ProvisionContext(&caddy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx.Context = context.WithoutCancel(ctx.Context)
	table := endpoints.NewTable()
	live := apply.NewLive(table, zaptest.NewLogger(t))
	t.Cleanup(live.Close)
	if err := live.Adopt(ctx, "", nil); err != nil {
		t.Fatal(err)
	}
	kept := &document.Delta{Hosts: map[string]*document.Host{}, Backends: map[string]*document.Backend{}}
	put(kept, 1_000_000, "/", 1)
	live.Apply(kept)
	fixture.ReleasesMemory(t, 3000, func(n int) { live.Apply(varied(n)) }, func(n int) {
		gone := varied(n)
		for name := range gone.Hosts {
			gone.Hosts[name] = nil
		}
		for id := range gone.Backends {
			gone.Backends[id] = nil
		}
		for name := range gone.Certificates {
			gone.Certificates[name] = nil
		}
		live.Apply(gone)
	})
	if n := live.Table.Hosts(); n != 1 {
		t.Errorf("%d hosts are left", n)
	}
	runtime.KeepAlive(table)
}

// varied returns a change that adds n hosts.
func varied(n int) *document.Delta {
	d := &document.Delta{Hosts: map[string]*document.Host{}, Backends: map[string]*document.Backend{},
		Certificates: map[string]*ir.Certificate{}}
	for i := range n {
		put(d, i, "/", 2)
		host, id := fmt.Sprintf("host-%d.example.com", i), fmt.Sprintf("ns/web-%d/80", i)
		secret := ir.Name{Namespace: "ns", Name: fmt.Sprint("secret-", i)}
		d.Hosts[host].Routes[0].Chain = json.RawMessage(
			fmt.Sprintf(`[{"handle":[{"handler":"static_response","body":"%d"}]}]`, i))
		d.Hosts[host].ClientAuth = &ir.ClientAuth{Secret: secret}
		d.Certificates[host] = &ir.Certificate{Host: host, Secret: secret}
		if i%3 == 0 {
			d.Backends[id].ExternalName = fmt.Sprintf("name-%d.example.com:80", i)
		}
		d.Hosts[fmt.Sprintf("*.sub-%d.example.com", i)] = &document.Host{}
	}
	return d
}
