package endpoints

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
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
	if got := pick(b); got != "" || b.ID() != "shop/web/80" || b.Endpoints() != nil {
		t.Fatal("a backend that was never set has an endpoint")
	}
	table.Set("shop/web/80", list(1))
	if got := pick(b); got != "10.0.0.0:80" {
		t.Fatalf("a request gets %q", got)
	}
	table.Delete("shop/web/80")
	if got := pick(b); got != "10.0.0.0:80" {
		t.Fatalf("after Delete, a request on its way gets %q", got)
	}
	table.Set("shop/web/80", nil)
	if pick(b) != "" || table.Backend("shop/web/80") != b {
		t.Fatal("a backend that comes back is not the one that routes hold")
	}
}

func pick(b *balancer.Backend) string {
	choice, ok := b.Pick(nil, nil)
	if !ok {
		return ""
	}
	return choice.Endpoint.Address()
}

// TestConfigureBeforeSet checks that the settings of a backend are kept until it has endpoints, even without a
// reference to it.
func TestConfigureBeforeSet(t *testing.T) {
	table := NewTable()
	table.Configure("x", &ir.LoadBalancing{SessionCookie: &ir.SessionCookie{Name: "c"}})
	runtime.GC()
	runtime.GC()
	table.Set("x", list(3))
	choice, ok := table.Backend("x").Pick(visitor{}, nil)
	if !ok || choice.Session == nil || choice.Cookie == "" {
		t.Fatalf("a client without a session gets %+v", choice)
	}
	table.Configure("x", nil)
	if choice, _ = table.Backend("x").Pick(visitor{}, nil); choice.Cookie != "" {
		t.Fatalf("without session cookies a client gets %q", choice.Cookie)
	}
}

type visitor struct{}

func (visitor) Hash(*nginx.Template) string { return "" }
func (visitor) Cookie(string) string        { return "" }
func (visitor) ClientIP() string            { return "" }

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

func TestForgottenBackend(t *testing.T) {
	table := NewTable()
	table.Backend("dropped")
	table.Set("deleted", list(1))
	table.Delete("deleted")
	table.Set("kept", list(1))
	held := table.Backend("held")
	fixture.Holds(t, "the table knows only the backend that is set and the one that is held", func() bool {
		runtime.GC()
		return size(table) == 2
	})
	if table.Backend("held") != held || len(table.Backend("kept").Endpoints()) != 1 {
		t.Fatal("a backend in use was forgotten")
	}
	runtime.KeepAlive(held)
}

func size(t *Table) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known.Len()
}

func TestPickWhileListsChange(t *testing.T) {
	table := NewTable()
	table.Set("x", list(1))
	b := table.Backend("x")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 5000 {
				if pick(b) == "" {
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

func TestAddressesOfSetBackends(t *testing.T) {
	table := NewTable()
	table.Set("shop/web/80", list(2))
	table.Set("shop/api/80", list(1))
	table.Set("shop/gone/80", list(3))
	table.Delete("shop/gone/80")
	found := map[string]bool{}
	for address := range table.Addresses() {
		found[address] = true
	}
	if len(found) != 2 || !found["10.0.0.0:80"] || !found["10.0.0.1:80"] {
		t.Errorf("the addresses are %v", found)
	}
}

// TestQuota checks that each namespace has its own quota of endpoints, and that Short yields backends with left out
// endpoints as soon as there is room.
func TestQuota(t *testing.T) {
	table := NewTable()
	has := func(id string, want, left int) {
		t.Helper()
		if n := len(table.Backend(id).Endpoints()); n != want || table.LeftOut(id) != left {
			t.Errorf("%s has %d endpoints, and %d are left out, want %d and %d", id, n, table.LeftOut(id), want, left)
		}
	}
	short := func(want ...string) {
		t.Helper()
		if got := slices.Collect(table.Short()); !slices.Equal(got, want) {
			t.Errorf("there is room for some of %v, want %v", got, want)
		}
	}
	many := list(MaxPerNamespace - 10)
	table.Set("b/one/80", many)
	table.Set("b/two/80", list(30))
	table.Set("b/three/80", list(5))
	table.Set("a/one/80", list(30))
	has("b/two/80", 10, 20)
	has("b/three/80", 0, 5)
	has("a/one/80", 30, 0)
	short()
	table.Sift()
	has("b/two/80", 10, 20)
	table.Set("b/one/80", many[:len(many)-6])
	short("b/three/80", "b/two/80")
	for id := range table.Short() {
		table.Set(id, list(30))
	}
	has("b/three/80", 6, 24)
	has("b/two/80", 10, 20)
	table.Delete("b/one/80")
	short("b/three/80", "b/two/80")
	for _, id := range []string{"b/two/80", "b/three/80", "a/one/80"} {
		table.Delete(id)
	}
	if table.quotas.Len() > 0 {
		t.Errorf("there are %d quotas of nothing", table.quotas.Len())
	}
}
