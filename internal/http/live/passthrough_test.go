package live_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tls/trust"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
)

func passing(names ...string) map[string]*document.Host {
	all := map[string]*document.Host{}
	for _, name := range names {
		all[name] = &document.Host{Passthrough: "shop/" + name + "/443"}
	}
	return all
}

func passthroughOf(table *live.Table, port uint16, server string) *live.Passthrough {
	return table.HostFor(port, server).Passthrough(server)
}

func TestPassthroughByName(t *testing.T) {
	table := live.NewTable(endpoints.NewTable(), trust.NewStore())
	if table.PassesAny(live.ServerPorts) || passthroughOf(table, live.ServerPorts, "a.example") != nil {
		t.Error("nobody has asked for it")
	}
	table.Update(passing("a.example", "*.b.example"))
	table.Update(map[string]*document.Host{"here.b.example": {}, "": {}})
	for name, want := range map[string]string{
		"a.example": "a.example", "A.Example.": "a.example", "x.b.example": "*.b.example", "here.b.example": "",
		"x.x.b.example": "",
		"b.example":     "", "x.a.example": "", "": "", ".": "", "a.example:443": "a.example",
	} {
		got := ""
		if to := passthroughOf(table, live.ServerPorts, name); to != nil {
			got = to.Backends.Next().ID()
		}
		if want != "" {
			want = "shop/" + want + "/443"
		}
		if got != want {
			t.Errorf("%q goes to %q, want %q", name, got, want)
		}
	}
	table.Update(map[string]*document.Host{"a.example": nil, "*.b.example": {}})
	for _, name := range []string{"a.example", "x.b.example"} {
		if table.PassesAny(live.ServerPorts) || passthroughOf(table, live.ServerPorts, name) != nil {
			t.Errorf("nobody asks for %s any more", name)
		}
	}
}

// TestPassthroughIsShared checks that the backends of a host share its connections, and that no backend is used if none
// has a weight. TLS must not be terminated here in that case either.
func TestPassthroughIsShared(t *testing.T) {
	backends := endpoints.NewTable()
	table := live.NewTable(backends, trust.NewStore())
	update := func(weights ...int) {
		d := &document.Host{}
		for i, w := range weights {
			d.PassthroughSplit = append(d.PassthroughSplit,
				document.StreamShare{Backend: fmt.Sprint(i), Weight: w, Fallback: i == 0})
			backends.Set(fmt.Sprint(i), []ir.Endpoint{{Address: "10.0.0.1:1"}})
		}
		table.Update(map[string]*document.Host{"a.example": d})
	}
	expect := func(want ...int) {
		t.Helper()
		got := make([]int, len(want))
		for range 1000 {
			backend := passthroughOf(table, live.ServerPorts, "a.example").Backends.Next()
			if to, err := strconv.Atoi(backend.ID()); err == nil {
				got[to]++
			}
		}
		for i := range want {
			if off := got[i] - want[i]; max(off, -off) > 10 {
				t.Errorf("the backends get %v of 1000 connections, want %v", got, want)
			}
		}
	}
	update(3, 1)
	expect(750, 250)
	backends.Set("1", nil)
	expect(1000, 0)
	update(0, 0)
	expect(0, 0)
	if refused := table.Refused(); len(refused) != 1 || refused[0].Host != "a.example" {
		t.Errorf("refused: %v", refused)
	}
	update(0, 1)
	expect(0, 1000)
	if refused := table.Refused(); len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
}

// TestPassthroughDrains checks when passthrough connections end, and that AwaitStreams waits for them.
func TestPassthroughDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := live.NewTable(endpoints.NewTable(), trust.NewStore())
		table.SetGlobal(&ir.Global{Drain: time.Minute})
		table.Update(passing("a.example", "b.example"))
		begin := time.Now()
		ended := make(chan time.Duration, 1)
		leave := passthroughOf(table, live.ServerPorts, "a.example").Register(func() { ended <- time.Since(begin) })
		stay := passthroughOf(table, live.ServerPorts, "b.example").Register(func() {
			t.Error("a connection of another host is ended")
		})
		// The connection stays open even if the host gets another backend.
		table.Update(map[string]*document.Host{"a.example": {Passthrough: "shop/other/443"},
			"b.example": {Passthrough: "shop/other/443"}})
		<-time.After(time.Hour) // The test uses the fake clock of synctest.
		begin = time.Now()
		table.Update(map[string]*document.Host{"a.example": {}})
		if took := <-ended; took != time.Minute {
			t.Errorf("it ends after %v", took)
		}
		leave()
		waited := make(chan struct{})
		go func() {
			defer close(waited)
			table.AwaitStreams(context.Background())
		}()
		synctest.Wait()
		select {
		case <-waited:
			t.Error("nobody waits for it")
		default:
		}
		stay()
		<-waited
	})
}

// TestPassthroughEndsWithTheTable checks that passthrough connections end some time after the table is closed.
func TestPassthroughEndsWithTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := live.NewTable(endpoints.NewTable(), trust.NewStore())
		table.Update(passing("a.example"))
		begin, ended := time.Now(), make(chan time.Duration, 1)
		defer passthroughOf(table, live.ServerPorts, "a.example").Register(func() { ended <- time.Since(begin) })()
		table.Close()
		if took := <-ended; took != 240*time.Second {
			t.Errorf("it ends after %v", took)
		}
	})
}

// BenchmarkPassthrough looks up passthrough hosts. The cost must not depend on the number of hosts.
func BenchmarkPassthrough(b *testing.B) {
	for _, n := range []int{0, 1, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			table := live.NewTable(endpoints.NewTable(), trust.NewStore())
			var names []string
			for i := range n {
				names = append(names, fmt.Sprintf("host-%d.example", i))
			}
			table.Update(passing(names...))
			b.ReportAllocs()
			for b.Loop() {
				if to := passthroughOf(table, live.ServerPorts, "host-0.example"); (to != nil) != (n > 0) {
					b.Fatal(to)
				}
			}
		})
	}
}
