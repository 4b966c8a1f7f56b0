package pattern

import (
	"runtime"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestOneOfEachText checks that equal texts share a pattern while it is in use, and that unused patterns are freed.
func TestOneOfEachText(t *testing.T) {
	const text = "/only-of-this-test/(.*)"
	a, errA := CompilePath(text)
	b, errB := CompilePath(text)
	exact, errC := Compile(text)
	if errA != nil || errB != nil || errC != nil || a != b {
		t.Fatalf("they are %p and %p, errors %v %v %v", a, b, errA, errB, errC)
	}
	if upper := "/ONLY-OF-THIS-TEST/x"; !a.Find(upper) || exact.Find(upper) {
		t.Error("a pattern without regard to case is taken for one with")
	}
	runtime.KeepAlive(a)
	fixture.Holds(t, "a pattern that nobody has is gone", func() bool {
		runtime.GC()
		compiled.mu.Lock()
		defer compiled.mu.Unlock()
		there := compiled.all.Has(ofPath + text)
		return !there
	})
}
