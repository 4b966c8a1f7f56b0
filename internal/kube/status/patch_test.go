package status

import (
	"testing"

	"github.com/k8singress/k8singress/internal/model/kinds"
)

// TestEveryStatusHasItsPatcher checks that there is a patcher for exactly the kinds with WritesStatus, because RBAC
// allows the controller to write these.
func TestEveryStatusHasItsPatcher(t *testing.T) {
	for _, kind := range kinds.All {
		if _, ok := patchers[kind.Name]; ok != kind.WritesStatus {
			t.Errorf("%s: WritesStatus is %v, and a patcher is there: %v", kind.Name, kind.WritesStatus, ok)
		}
	}
}
