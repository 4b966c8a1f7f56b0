package issuance

import (
	"fmt"
	"runtime"
	"testing"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestGoneHostsLeaveNoMemory checks that hosts that need no certificates any more leave no memory in the Manager.
func TestGoneHostsLeaveNoMemory(t *testing.T) {
	m := New(zap.NewNop())
	want := func(n int, c *ir.Certificate) {
		changes := map[string]*ir.Certificate{}
		for i := range n {
			changes[fmt.Sprintf("host-%d.example", i)] = c
		}
		m.Want(changes)
	}
	fixture.ReleasesMemory(t, 10_000, func(n int) {
		want(n, &ir.Certificate{Automated: true, Origin: ir.ParseRef("Ingress/shop/web")})
	}, func(n int) { want(n, nil) })
	runtime.KeepAlive(m)
}
