package l4app

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestAnotherEndpointIsTriedWhenOneIsSilent checks that an endpoint that does not accept a connection within the
// connect timeout is replaced by another one.
func TestAnotherEndpointIsTriedWhenOneIsSilent(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"as configured": 300 * time.Millisecond, "by default": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := cmp.Or(timeout, connectTimeout)
			// On a busy machine the other endpoint may be slow as well, so the test retries.
			fixture.Eventually(t, "the connect timeout", func() error {
				w := newWorld(t)
				r := route(ir.TCP, freePort(t), "a")
				r.Policy.ConnectTimeout = timeout
				w.set(r, fixture.Unreachable(t).String(), named(t, "up"))
				var longest time.Duration
				for range 2 {
					begin := time.Now()
					conn := dial(t, r)
					expect(t, conn, "up")
					longest = max(longest, time.Since(begin))
				}
				if longest < want-50*time.Millisecond || longest > want+time.Second {
					return fmt.Errorf("the longest of two connections took %v, want %v", longest, want)
				}
				return nil
			})
		})
	}
}
