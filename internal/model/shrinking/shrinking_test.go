package shrinking_test

import (
	"maps"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestLikeGoMap compares a Map with a Go map after random operations.
func TestLikeGoMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m shrinking.Map[int, int]
		want := map[int]int{}
		key := rapid.IntRange(0, 99)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), rapid.Int().Draw(t, "value")
				m.Set(k, v)
				want[k] = v
			},
			"set many": func(*rapid.T) {
				for k := range 100 {
					m.Set(k, k)
					want[k] = k
				}
			},
			"delete": func(t *rapid.T) {
				k := key.Draw(t, "key")
				m.Delete(k)
				delete(want, k)
			},
			"delete from": func(t *rapid.T) {
				for k := key.Draw(t, "key"); k < 100; k++ {
					m.Delete(k)
					delete(want, k)
				}
			},
			"clear": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "chance") == 0 {
					m.Clear()
					clear(want)
				}
			},
			"": func(t *rapid.T) {
				if got := maps.Collect(m.All()); !maps.Equal(got, want) || m.Len() != len(want) {
					t.Fatalf("the map has %d elements %v, want %v", m.Len(), got, want)
				}
				for k := range 100 {
					v, ok := m.Find(k)
					if w, has := want[k]; v != w || ok != has || m.Has(k) != has || m.Get(k) != w {
						t.Fatalf("the value of %d is %d (%v), want %d (%v)", k, v, ok, w, has)
					}
				}
			},
		})
	})
}

// TestLoopsMayDelete deletes elements in a loop over them. The loop must get each element exactly once, except elements
// that it has deleted before.
func TestLoopsMayDelete(t *testing.T) {
	for _, apart := range []int{0, 1, 500} {
		var m shrinking.Map[int, int]
		for k := range 1000 {
			m.Set(k, k)
		}
		deleted, got := map[int]bool{}, map[int]bool{}
		for k, v := range m.All() {
			if deleted[k] || got[k] || k != v {
				t.Fatalf("the loop gets the element %d, %d, which was deleted (%v) or had its turn (%v)", k, v,
					deleted[k], got[k])
			}
			got[k] = true
			other := (k + apart) % 1000
			m.Delete(other)
			deleted[other] = true
		}
		for k := range 1000 {
			if got[k] == m.Has(k) && apart == 0 || !got[k] && !deleted[k] {
				t.Fatalf("%d apart: the loop gets %d: %v; it is left: %v", apart, k, got[k], m.Has(k))
			}
		}
	}
}

// TestLoopsGetNewValues changes values and deletes most elements in a loop over them. The loop must get the new values.
func TestLoopsGetNewValues(t *testing.T) {
	var m shrinking.Map[int, string]
	for k := range 1000 {
		m.Set(k, "old")
	}
	first := true
	for k, v := range m.All() {
		if !first && v != "new" {
			t.Fatalf("the loop gets the value %q of %d, want the new one", v, k)
		}
		if first {
			first = false
			for other := range 1000 {
				if other%10 != 0 {
					m.Delete(other)
				} else {
					m.Set(other, "new")
				}
			}
		}
	}
	if keys := slices.Sorted(m.Keys()); len(keys) != 100 || keys[1] != 10 {
		t.Errorf("the map has the keys %v", keys)
	}
	if values := slices.Collect(m.Values()); len(values) != 100 || slices.Contains(values, "old") {
		t.Errorf("the map has the values %v", values)
	}
}

// TestMemoryIsReleased checks that a map with few elements needs little memory, whatever it has held before.
func TestMemoryIsReleased(t *testing.T) {
	for name, empty := range map[string]func(*shrinking.Map[int, [8]int]){
		"one after the other": func(m *shrinking.Map[int, [8]int]) {
			for k := range m.Len() - 3 {
				m.Delete(k)
			}
		},
		"in a loop": func(m *shrinking.Map[int, [8]int]) {
			for k := range m.Keys() {
				m.Delete(k)
			}
		},
		"at once": (*shrinking.Map[int, [8]int]).Clear,
		"in a copy": func(m *shrinking.Map[int, [8]int]) {
			rest := m.Clone()
			m.Clear()
			for k := range rest.Len() - 1 {
				rest.Delete(k)
			}
			*m = *rest
		},
	} {
		t.Run(name, func(t *testing.T) {
			var m shrinking.Map[int, [8]int]
			fixture.ReleasesMemory(t, 20_000, func(n int) {
				for k := range n {
					m.Set(k, [8]int{})
				}
			}, func(int) { empty(&m) })
			runtime.KeepAlive(&m)
		})
	}
}

// TestCopy checks that a copy of a Go map has the same elements, without the memory of deleted elements.
func TestCopy(t *testing.T) {
	var all map[int][8]int
	fixture.ReleasesMemory(t, 20_000, func(n int) {
		all = map[int][8]int{}
		for k := range n {
			all[k] = [8]int{k}
		}
	}, func(n int) {
		for k := range n - 10 {
			delete(all, k)
		}
		rest := shrinking.Copy(all)
		if !maps.Equal(rest, all) {
			t.Errorf("the copy has the elements %v, want %v", rest, all)
		}
		all = rest
	})
	runtime.KeepAlive(all)
	if none := shrinking.Copy(map[int]int{}); none != nil {
		t.Error("the copy of an empty map is not nil")
	}
}

// TestTrim checks that a list is copied if, and only if, it uses less than a quarter of its capacity.
func TestTrim(t *testing.T) {
	list := make([]int, 100, 400)
	list[24] = 7
	if same := shrinking.Trim(list); &same[0] != &list[0] {
		t.Error("a list that uses a quarter of its capacity is copied")
	}
	if less := shrinking.Trim(list[:25]); !slices.Equal(less, list[:25]) || cap(less) > 50 {
		t.Errorf("the list is %v, and has the capacity %d", less, cap(less))
	}
	if few := make([]int, 0, 8); cap(shrinking.Trim(few)) != 8 {
		t.Error("a small list is copied")
	}
}

// TestNil checks that a nil map has no elements.
func TestNil(t *testing.T) {
	var m *shrinking.Map[string, int]
	if m.Get("a") != 0 || m.Has("a") || m.Len() != 0 {
		t.Error("the nil map has elements")
	}
	for range m.All() {
		t.Error("the nil map yields elements")
	}
	for range new(shrinking.Map[string, int]).Clone().Values() {
		t.Error("the copy of an empty map yields elements")
	}
}

// TestSmallMapsAreKept checks that a map with a few elements that come and go allocates no memory for them.
func TestSmallMapsAreKept(t *testing.T) {
	var m shrinking.Map[int, int]
	allocations := testing.AllocsPerRun(100, func() {
		for k := range 8 {
			m.Set(k, k)
		}
		for k := range 8 {
			m.Delete(k)
		}
		m.Set(1, 1)
		m.Clear()
	})
	if allocations > 0 {
		t.Errorf("there are %.1f allocations", allocations)
	}
}

// BenchmarkChurn adds elements to a map and deletes them.
func BenchmarkChurn(b *testing.B) {
	var m shrinking.Map[int, int]
	for b.Loop() {
		for k := range 10_000 {
			m.Set(k, k)
		}
		for k := range 10_000 {
			m.Delete(k)
		}
	}
}
