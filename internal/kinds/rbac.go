package kinds

import (
	"cmp"
	"fmt"
	"strings"
)

const rbacHead = `# Printed from the table in internal/kinds by ` + "`make generate`" + `.
#
# What the controller may do: read the kinds that it follows, in the whole cluster, and write the status of Ingresses and
# Events. It reads namespaces only with the option namespace_selector. In its own namespace it holds the Lease that says
# which replica writes, and keeps what is in the storage kubernetes: certificates, ACME accounts and tokens of challenges
# as Secrets, and locks as Leases. Without that storage, the verbs get, create and update on leases are enough there.
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
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: k8singress
rules:
`

const rbacTail = `  - apiGroups: [events.k8s.io]
    resources: [events]
    verbs: [create]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: k8singress
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: k8singress
subjects:
  - kind: ServiceAccount
    name: k8singress
    namespace: k8singress
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: k8singress
  namespace: k8singress
rules:
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [get, list, watch, create, update, delete]
  - apiGroups: [""]
    resources: [secrets]
    verbs: [get, list, watch, create, update, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: k8singress
  namespace: k8singress
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: k8singress
subjects:
  - kind: ServiceAccount
    name: k8singress
    namespace: k8singress
`

// rbac returns the manifests of a service account that has the rights which the controller needs, and no others.
func rbac() string {
	read := rules("[get, list, watch]", func(k Kind) (string, bool) { return k.Resource, true })
	write := rules("[patch]", func(k Kind) (string, bool) { return k.Resource + "/status", k.WritesStatus })
	return rbacHead + read + write + rbacTail
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
