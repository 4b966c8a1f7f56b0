// Package gctune keeps the garbage collector from coming too often while the heap is small. Go collects when the heap has
// doubled. A process with few Ingresses has so little on its heap that requests double it many times a second, and each
// time all of it is looked through: that takes more of a processor than everything else that is done for a request here.
package gctune

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// Bytes are what may be allocated between two collections at least. A heap that is larger than that is collected as Go
// does it anyway, so this costs a process with many Ingresses nothing, and one with few of them no more than so much memory.
const Bytes = 64 << 20

const (
	// goDefault is how much of the live heap may be allocated until the next collection, in percent.
	goDefault = 100
	// most keeps a heap with almost nothing on it from having no limit.
	most = 1000
	// steps is how exact it is: to change it stops all goroutines for a moment.
	steps = 8
)

var once sync.Once

// Keep gives the process headroom, from the next collection on and as long as it lives. The memory limit of the process, as
// Caddy sets it for a container, goes first. Where somebody has set GOGC, that counts alone.
func Keep() {
	if os.Getenv("GOGC") != "" {
		return
	}
	once.Do(func() { follow(goDefault) })
}

// mark is something that each collection finds to be garbage. A pointer keeps it apart from other small things.
type mark struct{ _ *mark }

// follow adjusts the percentage, of which it knows what it is, after each collection.
func follow(current int) {
	runtime.AddCleanup(new(mark), func(current int) {
		next := percent(live())
		if change := next - current; change*steps > current || -change*steps > current || next == goDefault && change != 0 {
			debug.SetGCPercent(next)
			current = next
		}
		follow(current)
	}, current)
}

// live is how much the last collection has left: heap, stacks and globals count alike.
func live() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
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
	return int(min(max(Bytes*goDefault/max(live, 1), goDefault), most))
}
