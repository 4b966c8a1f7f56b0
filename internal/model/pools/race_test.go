//go:build race

package pools_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/model/pools"
)

// TestRaceDetectorChecksOwners checks that ownership is checked in all tests that run with the race detector, as in
// `make check`.
func TestRaceDetectorChecksOwners(t *testing.T) {
	h := pools.NewBuffers("buffers", 16).Get()
	h.Release()
	defer func() {
		if recover() == nil || !pools.Checking {
			t.Error("builds with the race detector do not check the owners of pooled memory")
		}
	}()
	h.Release()
}
