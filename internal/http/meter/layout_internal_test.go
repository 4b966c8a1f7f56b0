package meter

import (
	"testing"
	"unsafe"
)

// TestCellsAreAligned checks that cells of different routes, and the cells of one route, never share a cache line of 64
// bytes. It checks the same for the counters of label sets.
func TestCellsAreAligned(t *testing.T) {
	const line = 64
	registry := new(Registry)
	for i := range 1000 {
		route := registry.Acquire(Labels{Path: string(rune('a' + i))})
		if at := uintptr(unsafe.Pointer(&route.first)); at%line != 0 {
			t.Fatalf("route %d is at the address %x, which is no multiple of %d", i, at, line)
		}
	}
	route := registry.Acquire(Labels{})
	for range manyCollisions {
		route.collided()
	}
	more := *route.more.Load()
	at := uintptr(unsafe.Pointer(&more[0]))
	if at%line != 0 || unsafe.Sizeof(cell{})%line != 0 || len(more)&(len(more)-1) != 0 {
		t.Errorf("%d cells of %d bytes are at the address %x", len(more), unsafe.Sizeof(cell{}), at)
	}
	for bounds := range 20 {
		n := newNginx(NginxOptions{Times: make([]float64, bounds)})
		for range 10 {
			s := n.newSet(setLabels{}, false)
			at, rows := uintptr(unsafe.Pointer(s)), uintptr(unsafe.Pointer(&s.buckets[0]))
			if at%line != 0 || rows%line != 0 || unsafe.Sizeof(row{}) != line {
				t.Fatalf("a label set is at the address %x, and its %d rows of %d bytes are at %x", at, len(s.buckets),
					unsafe.Sizeof(row{}), rows)
			}
			if end := unsafe.Offsetof(s.sums) + unsafe.Sizeof(s.sums); end > line {
				t.Fatalf("the counters of a label set end after %d bytes", end)
			}
		}
	}
}
