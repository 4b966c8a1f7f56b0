package l4app

import (
	"os"
	"testing"
)

// descriptors is how many file descriptors are open.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
