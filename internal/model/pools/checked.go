//go:build race || poison

package pools

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Checking is true in builds that check the ownership of pooled values: builds with the race detector or with the build
// tag poison.
const Checking = true

// claim identifies one period in which a handle owns a pooled value.
type claim struct {
	generation uint64
	over       bool
}

func (c *claim) ended() bool { return c.over }
func (c *claim) end()        { c.over = true }

// owners contains the generation of a pooled value, a number that every release increments. The value is owned by the
// handle whose claim has the same generation.
type owners struct {
	generation atomic.Uint64
	// last is the call stack of the last release. mu guards it.
	mu   sync.Mutex
	last [16]uintptr
}

func (o *owners) taken() claim { return claim{generation: o.generation.Load()} }

func (o *owners) ownedBy(c claim) bool { return o.generation.Load() == c.generation }

// released ends the period of ownership that c identifies. It returns false if another handle has already ended this
// period.
func (o *owners) released(c claim) bool {
	if !o.generation.CompareAndSwap(c.generation, c.generation+1) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.last[runtime.Callers(3, o.last[:]):]) // Skip Callers, released and Release.
	return true
}

// panicOf panics with a message that contains the name of the pool, the fault, and the call stack of the last release.
func (o *owners) panicOf(name, fault string) {
	o.mu.Lock()
	stack := slices.Clone(o.last[:])
	o.mu.Unlock()
	var text strings.Builder
	fmt.Fprintf(&text, "pools: %s %s. It was released by:", name, fault)
	for frames, more := runtime.CallersFrames(stack), true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		fmt.Fprintf(&text, "\n\t%s %s:%d", frame.Function, frame.File, frame.Line)
	}
	panic(text.String())
}

func isZero[T any](value *T) bool { return reflect.ValueOf(value).Elem().IsZero() }
