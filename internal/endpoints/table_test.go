package endpoints

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/ir"
)

func list(n int) []ir.Endpoint {
	l := make([]ir.Endpoint, n)
	for i := range l {
		l[i].Address = fmt.Sprintf("10.0.%d.%d:80", i/250, i%250)
	}
	return l
}

func TestBackendIsOne(t *testing.T) {
	table := NewTable()
	b := table.Backend("shop/web/80")
	if _, ok := b.Pick(nil); ok || b.ID() != "shop/web/80" || b.Endpoints() != nil {
		t.Fatal("a backend that was never set has an endpoint")
	}
	table.Set("shop/web/80", list(1))
	if got, ok := b.Pick(nil); !ok || got != "10.0.0.0:80" {
		t.Fatalf("Pick = %q, %v", got, ok)
	}
	table.Delete("shop/web/80")
	if got, ok := b.Pick(nil); !ok || got != "10.0.0.0:80" {
		t.Fatalf("after Delete, a request on its way gets %q, %v", got, ok)
	}
	table.Set("shop/web/80", nil)
	if _, ok := b.Pick(nil); ok || table.Backend("shop/web/80") != b {
		t.Fatal("a backend that comes back is not the one that routes hold")
	}
}

func TestSetKeepsItsOwnCopy(t *testing.T) {
	table, l := NewTable(), list(2)
	table.Set("x", l)
	before := table.Backend("x").Endpoints()
	l[0].Address = "changed"
	table.Set("x", list(2))
	if after := table.Backend("x").Endpoints(); after[0] != before[0] || &after[0] != &before[0] {
		t.Fatalf("endpoints %v: an equal list should change nothing", after)
	}
}

func TestPickTakesTurns(t *testing.T) {
	table := NewTable()
	table.Set("x", list(3))
	b, count := table.Backend("x"), map[string]int{}
	for range 300 {
		address, _ := b.Pick(nil)
		count[address]++
	}
	for _, e := range list(3) {
		if count[e.Address] != 100 {
			t.Fatalf("300 picks of three endpoints: %v", count)
		}
	}
}

func TestPickAvoidsTried(t *testing.T) {
	table, l := NewTable(), list(3)
	table.Set("x", l)
	b := table.Backend("x")
	for range 10 {
		if got, _ := b.Pick([]string{l[0].Address, l[2].Address}); got != l[1].Address {
			t.Fatalf("Pick = %s, want the one that was not tried", got)
		}
	}
	if got, ok := b.Pick([]string{l[0].Address, l[1].Address, l[2].Address}); !ok || got == "" {
		t.Fatal("when all were tried, one of them is tried again")
	}
	table.Set("x", l[:1])
	if got, ok := b.Pick([]string{l[0].Address}); !ok || got != l[0].Address {
		t.Fatal("the only endpoint is tried again")
	}
}

func TestForgottenBackend(t *testing.T) {
	table := NewTable()
	table.Backend("dropped")
	table.Set("deleted", list(1))
	table.Delete("deleted")
	table.Set("kept", list(1))
	held := table.Backend("held")
	deadline := time.Now().Add(20 * time.Second)
	for size(table) > 2 && time.Now().Before(deadline) {
		runtime.GC()
		runtime.Gosched()
	}
	if n := size(table); n != 2 {
		t.Fatalf("the table knows %d backends, want the one that is set and the one that is held", n)
	}
	if table.Backend("held") != held || len(table.Backend("kept").Endpoints()) != 1 {
		t.Fatal("a backend in use was forgotten")
	}
	runtime.KeepAlive(held)
}

func size(t *Table) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.known)
}

func TestPickWhileListsChange(t *testing.T) {
	table := NewTable()
	table.Set("x", list(1))
	b := table.Backend("x")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 5000 {
				if _, ok := b.Pick([]string{"10.0.0.0:80"}); !ok {
					t.Error("no endpoint, although every list has one")
					return
				}
			}
		})
	}
	for i := range 1000 {
		table.Set("x", list(1+i%5))
	}
	group.Wait()
}

func TestContext(t *testing.T) {
	table := NewTable()
	if FromContext(WithTable(t.Context(), table)) != table || FromContext(context.Background()) != nil {
		t.Fatal("the context does not carry the table")
	}
}

func TestPickAllocatesNothing(t *testing.T) {
	table, tried := NewTable(), []string{"10.0.0.0:80"}
	table.Set("x", list(1000))
	b := table.Backend("x")
	if n := testing.AllocsPerRun(1000, func() { b.Pick(tried) }); n != 0 {
		t.Fatalf("Pick allocates %v times", n)
	}
}

func BenchmarkPick(b *testing.B) {
	for _, n := range []int{1, 3, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			table := NewTable()
			table.Set("x", list(n))
			backend := table.Backend("x")
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					backend.Pick(nil)
				}
			})
		})
	}
}

func TestKeep(t *testing.T) {
	table := NewTable()
	table.Set("a", []ir.Endpoint{{Address: "192.0.2.1:80"}})
	table.Keep("a")
	table.Keep("b")
	runtime.GC()
	if got := table.Backend("a").Endpoints(); len(got) != 1 {
		t.Errorf("the endpoints are %v", got)
	}
	if got := table.Backend("b").Endpoints(); len(got) != 0 {
		t.Errorf("a new backend has the endpoints %v", got)
	}
}
