//go:build !race && !poison

package pools_test

import (
	"testing"
	"unsafe"

	"github.com/k8singress/k8singress/internal/model/pools"
)

// TestHandlesCostNothing checks that handles in ordinary builds need no allocation and have the size of a pointer.
func TestHandlesCostNothing(t *testing.T) {
	if result := testing.Benchmark(BenchmarkBuffer); result.AllocsPerOp() > 0 {
		t.Errorf("%d allocations for each owner", result.AllocsPerOp())
	}
	if size, pointer := unsafe.Sizeof(pools.Buffer{}), unsafe.Sizeof(uintptr(0)); size != pointer {
		t.Errorf("a handle has %d bytes, and a pointer %d", size, pointer)
	}
}

// TestSecondReleaseIsHarmless checks that a second release of the same handle does not give the buffer a second owner,
// in builds that do not panic.
func TestSecondReleaseIsHarmless(t *testing.T) {
	buffers := pools.NewBuffers("buffers", 16)
	h := buffers.Get()
	h.Release()
	h.Release()
	one, other := buffers.Get(), buffers.Get()
	if &one.Bytes()[0] == &other.Bytes()[0] {
		t.Error("two owners have one buffer")
	}
}
