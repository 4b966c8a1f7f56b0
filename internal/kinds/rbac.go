package kinds

import (
	"fmt"
	"slices"
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

const rbacTail = `  - apiGroups: [networking.k8s.io]
    resources: [ingresses/status]
    verbs: [patch]
  - apiGroups: [events.k8s.io]
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
	var rules strings.Builder
	groups := map[string][]string{}
	var order []string
	for _, k := range All {
		group := k.GroupVersion.Group
		if !slices.Contains(order, group) {
			order = append(order, group)
		}
		groups[group] = append(groups[group], k.Resource)
	}
	for _, group := range order {
		fmt.Fprintf(&rules, "  - apiGroups: [%s]\n    resources: [%s]\n    verbs: [get, list, watch]\n",
			quoted(group), strings.Join(groups[group], ", "))
	}
	return rbacHead + rules.String() + rbacTail
}

func quoted(group string) string {
	if group == "" {
		return `""`
	}
	return group
}
