package status

import (
	"testing"

	"github.com/k8singress/k8singress/internal/model/kinds"
)

// TestEveryStatusHasItsPatcher checks that the kinds with a patcher are the kinds with WritesStatus, for which the RBAC
// rules allow the controller to write the status.
func TestEveryStatusHasItsPatcher(t *testing.T) {
	for _, kind := range kinds.All {
		if _, ok := patchers[kind.Name]; ok != kind.WritesStatus {
			t.Errorf("%s: WritesStatus is %v, and a patcher is there: %v", kind.Name, kind.WritesStatus, ok)
		}
	}
}
