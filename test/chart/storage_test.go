package chart

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// storageOf matches the storage in a Caddyfile, with its namespace and the namespace from which it copies.
var storageOf = regexp.MustCompile(
	`\n\tstorage kubernetes(?: \{\n\t\tnamespace (\S+)(?:\n\t\tcopy_from (\S+))?\n\t\})?\n`)

// TestStorageNamespace checks that certificates are stored in a separate namespace, which helm uninstall keeps, unless
// the values choose another namespace, or the release creates only namespaced objects.
func TestStorageNamespace(t *testing.T) {
	var all []struct {
		Name   string `json:"name"`
		Values values `json:"values"`
		// Namespace is the namespace of the storage. Made reports whether the release creates it, and Copies whether it
		// copies certificates from its own namespace.
		Namespace string `json:"namespace"`
		Made      bool   `json:"made"`
		Copies    bool   `json:"copies"`
		// Install is the namespace of the release.
		Install string `json:"install"`
	}
	readYAML(t, "testdata/storage.yaml", &all)
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			r, err := render(c.Values, install{namespace: c.Install})
			if err != nil {
				t.Fatal(err)
			}
			objects := r.objects(t)
			caddyfile, _ := controller(t, objects)
			found := storageOf.FindStringSubmatch(caddyfile)
			if found == nil {
				t.Fatalf("the Caddyfile has no storage:\n%s", caddyfile)
			}
			if found[1] != c.Namespace || (found[2] != "") != c.Copies {
				t.Errorf("the storage is in %q, with a copy from %q", found[1], found[2])
			}
			made := values{"kind": "Namespace", "metadata": values{
				"name": c.Namespace, "annotations": values{"helm.sh/resource-policy": "keep"},
			}}
			if has := slices.ContainsFunc(objects,
				func(object values) bool { return has(object, made) }); has != c.Made {
				t.Errorf("the namespace is made: %v", has)
			}
		})
	}
}

// TestRightsToWriteSecrets checks each scenario: only in the namespace of the storage may the controller change or
// delete Secrets and Leases without a list of their names.
func TestRightsToWriteSecrets(t *testing.T) {
	check := func(t *testing.T, objects []values) {
		t.Helper()
		caddyfile, _ := controller(t, objects)
		var namespace string
		if found := storageOf.FindStringSubmatch(caddyfile); found != nil {
			namespace = found[1]
		}
		writes := writesUnnamed(t, objects)
		if namespace != "" && !slices.Equal(writes, []string{namespace + " leases", namespace + " secrets"}) {
			t.Errorf("it may write to %v, and the storage is in %s", writes, namespace)
		}
		if namespace == "" && !slices.Equal(writes, []string{"web leases", "web secrets"}) {
			t.Errorf("it may write to %v, and the storage is in its own namespace", writes)
		}
	}
	for _, s := range variants(t) {
		t.Run(s.name, func(t *testing.T) { check(t, mustRender(t, s.with).objects(t)) })
	}
	for _, shape := range shapes {
		t.Run("deploy "+shape, func(t *testing.T) { check(t, renderShape(t, shape).objects(t)) })
	}
}

// writesUnnamed returns each namespace, together with the resource, in which Secrets or Leases may be changed or
// deleted without a list of names. The empty namespace stands for the whole cluster.
func writesUnnamed(t *testing.T, objects []values) (all []string) {
	t.Helper()
	for _, object := range objects {
		if kind := object["kind"]; kind != "Role" && kind != "ClusterRole" {
			continue
		}
		var role rbacv1.Role
		convert(t, object, &role)
		for _, rule := range role.Rules {
			writes := slices.ContainsFunc(rule.Verbs, func(verb string) bool {
				return verb == "update" || verb == "patch" || verb == "delete"
			})
			for _, resource := range rule.Resources {
				if writes && len(rule.ResourceNames) == 0 && (resource == "secrets" || resource == "leases") {
					all = append(all, fmt.Sprintf("%s %s", role.Namespace, resource))
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// TestStorageNamespacesDiffer checks that releases with different names or namespaces get different storage namespaces,
// and that their names are valid.
func TestStorageNamespacesDiffer(t *testing.T) {
	long := strings.Repeat("long-", 10)
	by := map[string]string{}
	for _, namespace := range []string{"web", "edge", "ingress-nginx", long + "a", long + "b"} {
		for _, name := range []string{"web", "edge", "ingress-nginx", "k8singress", long[:39]} {
			r, err := render(nil, install{name: name, namespace: namespace})
			if err != nil {
				t.Fatal(err)
			}
			caddyfile, _ := controller(t, r.objects(t))
			found := storageOf.FindStringSubmatch(caddyfile)[1]
			if before := by[found]; before != "" || len(found) > 63 || strings.HasSuffix(found, "-") {
				t.Errorf("%s is for %s in %s, and for %s", found, name, namespace, before)
			}
			by[found] = name + " in " + namespace
		}
	}
}
