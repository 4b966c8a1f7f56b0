package kinds

import (
	"cmp"
	"fmt"
	"slices"
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

	// storageHead says why the storage has a Role of its own.
	storageHead = `# For "storage kubernetes" in the Caddyfile: certificates, ACME accounts and tokens of challenges are Secrets, and locks are
# Leases. Leave it out, with its RoleBinding, where Caddy has another storage. RBAC knows no labels, so these are the rights
# on all Secrets of this namespace: keep no others in it.
`

	namespacesHead = printed + `# What the option namespace_selector needs besides rbac.yaml: to read the labels of namespaces.
`

	publishPortsHead = printed +
		`# What only the option publish_ports needs, besides rbac.yaml: the right to change the controller's own Service, and to
# read its own pods, whose lists of ports say whether one is missing there. docs/kubernetes.md says what for.
#
# Not applied with the rest, because whoever may change this Service decides where its clients go.
`

	rightsHead = printed + `# The rights of the size %q, as rules of RBAC. A key of the first level is a Role, or the ClusterRole:
#
#   cluster  a ClusterRole
#   watched  a Role in each namespace that is followed
#   own      a Role in the namespace of the controller
#   named    a Role in each other namespace with an object that an option names, such as configmap or default_certificate
#
# A key below it is the option of the Caddyfile that needs the rules, or always. Where a rule has resourceNamesFrom, resourceNames
# come from that option: the name of the object in publish_service; election_id itself; the Secrets of that namespace which Ingresses
# refer to; the ConfigMaps, Services and Secrets of that namespace which options name. A rule without any name is to be left out,
# since RBAC takes an empty list for all objects.
`
)

// defaultNames are the names in deploy for what rights take theirs from.
var defaultNames = map[string]string{"publish_service": "k8singress"}

// rbac returns the manifests of a service account that has the rights which the controller needs in a cluster, and no others.
func rbac() string {
	all := rightsOf(cluster)
	return rbacHead + strings.Join([]string{
		granted("ClusterRole", "k8singress", part(all, everywhere, always)),
		granted("Role", "k8singress", part(all, own, "election_id")),
		storageHead + granted("Role", "k8singress-storage", part(all, own, "storage")),
	}, "---\n")
}

// namespacesRBAC returns the manifests of the right to read the labels of namespaces.
func namespacesRBAC() string {
	return namespacesHead + granted("ClusterRole", "k8singress-namespaces", part(rightsOf(cluster), everywhere, "namespace_selector"))
}

// publishPortsRBAC returns the manifests of the right to change the controller's own Service.
func publishPortsRBAC() string {
	return publishPortsHead + granted("Role", "k8singress-publish-ports", part(rightsOf(cluster), own, "publish_ports"))
}

// granted returns a Role in the namespace of the controller, or a ClusterRole, and the binding that gives it to the service account.
func granted(kind, name string, list []right) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\n" + metadata(kind, name) + "rules:\n" + rules("  ", list) +
		"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "Binding\n" + metadata(kind, name) + fmt.Sprintf(`roleRef:
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

// rules prints rights as items of a list.
func rules(indent string, list []right) string {
	var text strings.Builder
	for _, r := range list {
		fmt.Fprintf(&text, "%s- apiGroups: [%s]\n", indent, cmp.Or(r.group, `""`))
		fmt.Fprintf(&text, "%s  resources: [%s]\n", indent, strings.Join(r.resources, ", "))
		switch name, known := defaultNames[r.names]; {
		case r.names == "":
		case known && indent == "  ":
			fmt.Fprintf(&text, "%s  # The name in %s.\n%s  resourceNames: [%s]\n", indent, r.names, indent, name)
		default:
			fmt.Fprintf(&text, "%s  resourceNamesFrom: %s\n", indent, r.names)
		}
		fmt.Fprintf(&text, "%s  verbs: [%s]\n", indent, strings.Join(r.verbs, ", "))
	}
	return text.String()
}

// rightsFile returns the rights of a size for templates of manifests.
func rightsFile(size string) string {
	all := rightsOf(size)
	text := fmt.Sprintf(rightsHead, size)
	for _, at := range []place{everywhere, watched, own, named} {
		var options []string
		for _, r := range all {
			if r.place == at && !slices.Contains(options, r.part) {
				options = append(options, r.part)
			}
		}
		if len(options) > 0 {
			text += string(at) + ":\n"
		}
		for _, option := range options {
			text += "  " + option + ":\n" + rules("    ", part(all, at, option))
		}
	}
	return text
}
