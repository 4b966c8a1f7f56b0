package examples_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestPublishPortsRole: deploy/publish-ports.yaml gives the account of the deployment the right to its own Service, and to no
// other one.
func TestPublishPortsRole(t *testing.T) {
	d := readDeployment(t)
	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	documents := strings.Split(read(t, "../deploy/publish-ports.yaml"), "---\n")
	if len(documents) != 2 {
		t.Fatalf("there are %d documents", len(documents))
	}
	for i, into := range []any{&role, &binding} {
		if err := yaml.UnmarshalStrict([]byte(documents[i]), into); err != nil {
			t.Fatal(err)
		}
	}
	if role.Namespace != d.service.Namespace || binding.Namespace != role.Namespace || binding.RoleRef.Name != role.Name {
		t.Errorf("the Role %s/%s, bound in %s to %s", role.Namespace, role.Name, binding.Namespace, binding.RoleRef.Name)
	}
	account := rbacv1.Subject{Kind: "ServiceAccount", Name: d.workload.Spec.Template.Spec.ServiceAccountName, Namespace: d.workload.Namespace}
	if len(binding.Subjects) != 1 || binding.Subjects[0] != account {
		t.Errorf("it is for %+v", binding.Subjects)
	}
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			if resource == "services" && (len(rule.ResourceNames) != 1 || rule.ResourceNames[0] != d.service.Name) {
				t.Errorf("the Services are %v", rule.ResourceNames)
			}
		}
	}
}
