package kinds

import (
	"fmt"
	"slices"
	"strings"
)

// accountNamespace and accountName are those of the service account.
const (
	accountNamespace = "k8singress"
	accountName      = "k8singress"
)

const rbacHead = `# Printed from the table in internal/kinds by ` + "`make generate`" + `.
#
# What the controller may do: read the kinds that it follows, in the whole cluster, and write the status of Ingresses and
# Events. It reads namespaces only with the option namespace_selector. In its own namespace it holds the Lease that says
# which replica writes.
apiVersion: v1
kind: Namespace
metadata:
  name: %[1]s
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: %[2]s
  namespace: %[1]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: %[2]s
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
  name: %[2]s
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: %[2]s
subjects:
  - kind: ServiceAccount
    name: %[2]s
    namespace: %[1]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: %[2]s
  namespace: %[1]s
rules:
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [get, create, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: %[2]s
  namespace: %[1]s
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: %[2]s
subjects:
  - kind: ServiceAccount
    name: %[2]s
    namespace: %[1]s
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
	return fmt.Sprintf(rbacHead, accountNamespace, accountName) + rules.String() + fmt.Sprintf(rbacTail, accountNamespace, accountName)
}

func quoted(group string) string {
	if group == "" {
		return `""`
	}
	return group
}
