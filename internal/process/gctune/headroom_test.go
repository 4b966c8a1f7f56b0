package gctune_test

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/k8singress/k8singress/internal/process/gctune"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// percent returns the current percentage.
func percent() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// becomes runs collections until the percentage has the expected value.
func becomes(t *testing.T, what string, right func(uint64) bool) {
	t.Helper()
	fixture.Eventually(t, what, func() error {
		if p := percent(); !right(p) {
			runtime.GC()
			return fmt.Errorf("%d percent", p)
		}
		return nil
	})
}

// TestKeep checks that a small heap gets headroom, that a large one uses Go's default, and that the percentage follows
// a change between the two.
func TestKeep(t *testing.T) {
	t.Setenv("GOGC", "100")
	gctune.Keep()
	runtime.GC()
	if got := percent(); got != 100 {
		t.Errorf("%d percent in place of those that somebody has set", got)
	}
	t.Setenv("GOGC", "")
	gctune.Keep()
	gctune.Keep()
	becomes(t, "a small heap", func(p uint64) bool { return p > 300 })
	large := make([]byte, 2*gctune.Bytes)
	becomes(t, "a large heap", func(p uint64) bool { return p == 100 })
	runtime.KeepAlive(large)
	becomes(t, "a heap that is small again", func(p uint64) bool { return p > 300 })
}
