package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap/zaptest"

	"github.com/k8singress/k8singress/internal/control/apply"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
)

// BenchmarkOneOf10000 applies the change of one host and one backend. The time must not depend on the number of hosts.
func BenchmarkOneOf10000(b *testing.B) {
	ctx, err := caddy.ProvisionContext(&caddy.Config{})
	if err != nil {
		b.Fatal(err)
	}
	ctx.Context = context.WithoutCancel(ctx.Context)
	live := apply.NewLive(endpoints.NewTable(), zaptest.NewLogger(b))
	b.Cleanup(live.Close)
	if err := live.Adopt(ctx, "", nil); err != nil {
		b.Fatal(err)
	}
	all := &document.Delta{Hosts: map[string]*document.Host{}, Backends: map[string]*document.Backend{}}
	for i := range 10_000 {
		put(all, i, "/", 3)
	}
	live.Apply(all)
	var changes [2]*document.Delta
	for i := range changes {
		changes[i] = &document.Delta{Hosts: map[string]*document.Host{}, Backends: map[string]*document.Backend{}}
		put(changes[i], 77, fmt.Sprint("/", i), 3+i)
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		live.Apply(changes[i%2])
		i++
	}
	if n := live.Table.Hosts(); n != 10_000 {
		b.Fatalf("there are %d hosts", n)
	}
}

// put adds one host and its backend.
func put(d *document.Delta, i int, path string, addresses int) {
	id := fmt.Sprintf("ns/web-%d/80", i)
	d.Hosts[fmt.Sprintf("host-%d.example.com", i)] = &document.Host{Routes: []*document.Route{{
		Type: "prefix", Path: path, Destination: document.Destination{
			Backend: id, Chain: json.RawMessage(`[{"handle":[{"handler":"static_response","body":"x"}]}]`),
		},
	}}}
	backend := &document.Backend{}
	for n := range addresses {
		backend.Endpoints = append(backend.Endpoints, fmt.Sprintf("10.0.%d.%d:80", i/250, n+1))
	}
	d.Backends[id] = backend
}
