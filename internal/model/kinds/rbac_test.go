package kinds

import (
	"flag"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

var update = flag.Bool("update", false, "rewrite the rights in charts")

// TestRBAC checks that the rights files of the chart are up to date. The tests in test/e2e check that these rights are
// sufficient, because their controller has no others.
func TestRBAC(t *testing.T) {
	for _, size := range sizes {
		fixture.Generated(t, "../../../charts/k8singress/files/rights/"+size+".yaml", rightsFile(size), *update)
	}
}

// TestRightsAreRules checks that templates of manifests can parse the rights of each size, and that only the size
// cluster has cluster-wide rights, except the right to one object by its name.
func TestRightsAreRules(t *testing.T) {
	for _, size := range sizes {
		var places map[string]map[string][]struct {
			rbacv1.PolicyRule `json:",inline"`
			ResourceNamesFrom string `json:"resourceNamesFrom"`
		}
		if err := yaml.UnmarshalStrict([]byte(rightsFile(size)), &places); err != nil {
			t.Fatalf("%s: %v", size, err)
		}
		for _, rule := range places["cluster"][admissionWebhook] {
			if rule.ResourceNamesFrom == "" {
				t.Errorf("%s has rights to all %q", size, rule.Resources)
			}
		}
		delete(places["cluster"], admissionWebhook)
		if everywhere := len(places["cluster"]) > 0; everywhere != (size == cluster) ||
			len(places["watched"]) > 0 == everywhere {
			t.Errorf("%s has rights in %d and %d parts", size, len(places["cluster"]), len(places["watched"]))
		}
		for _, rule := range places["watched"][always] {
			if slices.Contains(rule.Resources, "secrets") && (rule.ResourceNamesFrom != "") != (size == minimal) {
				t.Errorf("%s may read the Secrets %q", size, rule.ResourceNamesFrom)
			}
		}
	}
}
