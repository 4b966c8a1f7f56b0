package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestHeard checks that a change of an object updates the time of its kind, and that the times stand still while the
// API server is away.
func TestHeard(t *testing.T) {
	api := startAPIServer(t)
	api.set(oneOfEach("shop", "web")...)
	c := run(t, Options{Kubeconfig: api.kubeconfig(t)}, quietLog(t))
	waitSynced(t, c)
	first := c.Heard()
	for _, kind := range []string{kinds.Ingress, kinds.Service, kinds.Secret} {
		if age := time.Since(first[kind]); age < 0 || age > fixture.Patience {
			t.Errorf("the API server was heard about %s %v ago", kind, age)
		}
	}
	api.set(oneOfEach("shop", "other")...)
	fixture.Eventually(t, "a later time", func() error {
		if now := c.Heard()[kinds.Ingress]; !now.After(first[kinds.Ingress]) {
			return fmt.Errorf("it is %v, and was %v", now, first[kinds.Ingress])
		}
		return nil
	})
}
