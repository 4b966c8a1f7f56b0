package kinds

import (
	"cmp"
	"fmt"
	"strings"
)

const (
	printed = "# Printed from the table in internal/kinds by `make generate`.\n#\n"

	rbacHead = printed + `# What the controller may do: read the kinds that it follows, in the whole cluster, and write the status of Ingresses and
# Events. In its own namespace it holds the Lease that says which replica writes. What only one option needs stands apart:
# namespaces.yaml, publish-ports.yaml, and the Role k8singress-storage below.
apiVersion: v1
kind: Namespace
metadata:
  name: k8singress
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: k8singress
  namespace: k8singress
---
`

	rbacEvents = `  - apiGroups: [events.k8s.io]
    resources: [events]
    verbs: [create]
---
`

	rbacLease = `rules:
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [get, create, update]
---
`

	// rbacStorage begins with why it is a Role of its own.
	rbacStorage = `---
# For "storage kubernetes" in the Caddyfile: certificates, ACME accounts and tokens of challenges are Secrets, and locks are
# Leases. Leave it out, with its RoleBinding, where Caddy has another storage. RBAC knows no labels, so these are the rights
# on all Secrets of this namespace: keep no others in it.
`
	rbacStorageRules = `rules:
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [get, list, watch, create, update, delete]
  - apiGroups: [""]
    resources: [secrets]
    verbs: [get, list, watch, create, update, delete]
---
`

	namespacesHead = printed + `# What the option namespace_selector needs besides rbac.yaml: to read the labels of namespaces.
`
)

// rbac returns the manifests of a service account that has the rights which the controller needs, and no others.
func rbac() string {
	read := rules("[get, list, watch]", func(k Kind) (string, bool) { return k.Resource, !k.Optional })
	write := rules("[patch]", func(k Kind) (string, bool) { return k.Resource + "/status", k.WritesStatus })
	const all, own, storage = "k8singress", "k8singress", "k8singress-storage"
	return rbacHead +
		role("ClusterRole", all) + "rules:\n" + read + write + rbacEvents + binding("ClusterRole", all) + "---\n" +
		role("Role", own) + rbacLease + binding("Role", own) +
		rbacStorage + role("Role", storage) + rbacStorageRules + binding("Role", storage)
}

// namespaces returns the manifests of the right to read the kinds that only an option needs.
func namespaces() string {
	const name = "k8singress-namespaces"
	read := rules("[get, list, watch]", func(k Kind) (string, bool) { return k.Resource, k.Optional })
	return namespacesHead + role("ClusterRole", name) + "rules:\n" + read + "---\n" + binding("ClusterRole", name)
}

// role begins a Role in the namespace of the controller, or a ClusterRole.
func role(kind, name string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\n" + metadata(kind, name)
}

// binding gives it to the service account.
func binding(kind, name string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "Binding\n" + metadata(kind, name) + fmt.Sprintf(`roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: %s
  name: %s
subjects:
  - kind: ServiceAccount
    name: k8singress
    namespace: k8singress
`, kind, name)
}

func metadata(kind, name string) string {
	text := "metadata:\n  name: " + name + "\n"
	if kind == "Role" {
		text += "  namespace: k8singress\n"
	}
	return text
}

// rules prints a rule for each API group, in the order of the table, with the resources of its kinds.
func rules(verbs string, resource func(Kind) (name string, ok bool)) string {
	groups := map[string][]string{}
	var order []string
	for _, k := range All {
		name, ok := resource(k)
		if !ok {
			continue
		}
		group := cmp.Or(k.GroupVersion.Group, `""`)
		if groups[group] == nil {
			order = append(order, group)
		}
		groups[group] = append(groups[group], name)
	}
	var text strings.Builder
	for _, group := range order {
		fmt.Fprintf(&text, "  - apiGroups: [%s]\n    resources: [%s]\n    verbs: %s\n", group, strings.Join(groups[group], ", "), verbs)
	}
	return text.String()
}
