package kinds

import (
	"flag"
	"testing"

	"github.com/k8singress/k8singress/internal/fixture"
)

var update = flag.Bool("update", false, "rewrite the rights in deploy")

// TestRBAC holds that the manifests are up to date. That the rights suffice is held by the tests in test/e2e, whose
// controller has no others.
func TestRBAC(t *testing.T) {
	fixture.Generated(t, "../../deploy/rbac.yaml", rbac(), *update)
	fixture.Generated(t, "../../deploy/namespaces.yaml", namespaces(), *update)
}
