package kinds

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite deploy/rbac.yaml")

const rbacFile = "../../deploy/rbac.yaml"

// TestRBAC holds that the manifests are up to date. That the rights suffice is held by the tests in test/e2e, whose
// controller has no others.
func TestRBAC(t *testing.T) {
	if *update {
		if err := os.WriteFile(rbacFile, []byte(rbac()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(rbacFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), rbac()); diff != "" {
		t.Errorf("deploy/rbac.yaml is not what the table says; run make generate (-file +table):\n%s", diff)
	}
}
