package resolver_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/upstream/resolver"
)

// TestTenant11Names checks that names without a response do not delay other namespaces, even those that use the same
// names.
func TestTenant11Names(t *testing.T) {
	s := serve(t, "one.example. 60 A 192.0.2.1", "shared.example. 60 A 192.0.2.2")
	f := follow(t, "", "")
	f.Configure(usual(s.address))
	begin := time.Now()
	for i := range 200 {
		f.Follow(fmt.Sprintf("b/pit-%d/80", i), fmt.Sprintf("n%d.tar.pit:80", i))
	}
	asked := func() (n int) {
		for i := range 200 {
			n += min(s.times(fmt.Sprintf("n%d.tar.pit. A udp", i)), 1)
		}
		return n
	}
	fixture.Holds(t, "the other namespace has its share", func() bool { return asked() > 0 })
	f.Follow("b/shared/80", "shared.example:80")
	fixture.Holds(t, "the shared name waits in the queue of the first namespace", func() bool {
		_, queued := f.Known()
		return queued == 0
	})
	f.Follow("c/shared/80", "shared.example:80")
	f.Follow("c/one/80", "one.example:80")
	for id, want := range map[string]string{"c/one/80": "192.0.2.1:80", "c/shared/80": "192.0.2.2:80",
		"b/shared/80": "192.0.2.2:80"} {
		fixture.Holds(t, id+" has its address", func() bool {
			got, _ := f.lastSet(id)
			return slices.Equal(got, []string{want})
		})
	}
	// A look-up without a response takes at least five seconds.
	if n, most := asked(), resolver.Share*(1+int(time.Since(begin)/(5*time.Second))); n > most {
		t.Errorf("%d names of one namespace are looked up at the same time, more than %d", n, most)
	}
}
