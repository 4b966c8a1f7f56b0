package cluster

import (
	"fmt"
	"iter"
	"runtime"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/process/wake"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestGoneReferencesLeaveNoMemory checks that objects that are no longer watched by name leave no memory.
func TestGoneReferencesLeaveNoMemory(t *testing.T) {
	kind, _ := kinds.ByName(kinds.Secret)
	b := &byName{kind: kind, store: snapshot.NewStore(), changed: wake.New()}
	secrets := func(n int) iter.Seq[ir.Ref] {
		return func(yield func(ir.Ref) bool) {
			for i := range n {
				if !yield(secretRef(fmt.Sprint("namespace-", i/100), fmt.Sprint("secret-", i))) {
					return
				}
			}
		}
	}
	fixture.ReleasesMemory(t, 10_000, func(n int) { b.follow(secrets(n)) }, func(int) { b.follow(secrets(0)) })
	runtime.KeepAlive(b)
}
