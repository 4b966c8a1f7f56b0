package front

import (
	"testing"

	"github.com/k8singress/k8singress/internal/fixture"
)

// TestClientsAreBounded: near the bound each new connection costs one that waits, once; beyond it none comes in, until others end.
func TestClientsAreBounded(t *testing.T) {
	c := newClients()
	c.most = func() int64 { return 32 }
	left := make(chan int, 64)
	for i := range 32 {
		if !c.enter() {
			t.Fatalf("there is no room for connection %d", i)
		}
		if i < 30 {
			c.mayLeave(i, func() { left <- i })
		}
	}
	c.stays(0)
	seen := map[int]bool{}
	for range 2 {
		seen[fixture.Receive(t, "a connection that leaves", left)] = true
	}
	if c.enter() || c.refused.Load() != 1 || c.open.Load() != 32 {
		t.Errorf("one more comes in; %d are open, %d refused", c.open.Load(), c.refused.Load())
	}
	seen[fixture.Receive(t, "a connection that leaves", left)] = true
	if len(seen) != 3 {
		t.Errorf("asked to leave are %v", seen)
	}
	if c.gone(); !c.enter() {
		t.Error("there is no room when one has gone")
	}
}
