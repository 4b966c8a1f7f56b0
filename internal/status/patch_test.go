package status

import (
	"testing"

	"github.com/k8singress/k8singress/internal/kinds"
)

// TestEveryStatusHasItsPatcher: the controller has the right to write what the table of kinds says, and no other.
func TestEveryStatusHasItsPatcher(t *testing.T) {
	for _, kind := range kinds.All {
		if _, ok := patchers[kind.Name]; ok != kind.WritesStatus {
			t.Errorf("%s: WritesStatus is %v, and a patcher is there: %v", kind.Name, kind.WritesStatus, ok)
		}
	}
}
