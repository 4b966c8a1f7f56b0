// Package gctune keeps the garbage collector from running too often while the heap is small. Go collects when the heap
// has doubled. A process with few Ingresses has such a small heap that requests double it many times a second. Each
// collection scans the whole heap, which would take more processor time than everything else that is done for a
// request.
package gctune

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// Bytes is the minimum number of bytes that may be allocated between two collections. It has no effect on a process
// whose live heap is larger than Bytes. In other processes, it increases the memory usage by at most Bytes.
const Bytes = 64 << 20

const (
	// goDefault is Go's default value of GOGC: the next collection starts when the allocated bytes reach this
	// percentage of the live heap.
	goDefault = 100
	// maxPercent is the maximum value of GOGC. It applies if the heap is almost empty.
	maxPercent = 1000
	// steps sets the precision: GOGC is not changed by less than 1/steps of its value, because each change stops all
	// goroutines for a moment.
	steps = 8
)

var once sync.Once

// Keep starts adjusting the garbage collector for the lifetime of the process, beginning with the next collection. The
// memory limit that Caddy sets in a container takes precedence. If the environment variable GOGC is set, Keep does
// nothing.
func Keep() {
	if os.Getenv("GOGC") != "" {
		return
	}
	once.Do(func() { follow(goDefault) })
}

// mark is the type of an object that is not referenced, so the next collection frees it and runs its cleanup function.
// It contains a pointer, so that the allocator does not combine it with other small objects.
type mark struct{ _ *mark }

// follow adjusts GOGC after each collection. current is the current value of GOGC.
func follow(current int) {
	runtime.AddCleanup(new(mark), func(current int) {
		next := percent(live())
		if change := next - current; change*steps > current || -change*steps > current ||
			next == goDefault && change != 0 {
			debug.SetGCPercent(next)
			current = next
		}
		follow(current)
	}, current)
}

// live returns the number of bytes that were in use after the last collection: heap, stacks and globals, as for GOGC.
func live() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"},
		{Name: "/gc/scan/globals:bytes"}}
	metrics.Read(samples)
	sum := uint64(0)
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			sum += s.Value.Uint64()
		}
	}
	return sum
}

func percent(live uint64) int {
	return int(min(max(Bytes*goDefault/max(live, 1), goDefault), maxPercent))
}
