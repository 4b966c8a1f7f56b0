package kinds

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// rightsHead is the format string of the comment at the top of a file with RBAC rules. Its argument is the name of the
// set of RBAC rules in the file, such as "cluster".
const rightsHead = "# Generated from the table in internal/model/kinds by `make generate`.\n#" + `
# The RBAC rules of the size %q. Each key of the first level is a Role or the ClusterRole:
#
#   cluster  the ClusterRole
#   watched  a Role in each watched namespace
#   own      a Role in the namespace of the controller
#   storage  a Role in the namespace of the certificate storage
#   named    a Role in each other namespace with an object that an option names, such as configmap
#
# Each key of the second level is the option of the Caddyfile that needs the rules, or "always". If a rule has
# resourceNamesFrom, its value says which names to write into resourceNames: the object in publish_service, the value of
# election_id, the ValidatingWebhookConfiguration in admission_webhook and the Secret with its name and the suffix
# -authority, or the ConfigMaps, Services or Secrets of the namespace that options or Ingresses name. Leave out a rule
# without any name, because an empty list in RBAC means all objects.
`

// The function rules formats a list of RBAC rules as items of a YAML list.
func rules(list []right) string {
	var text strings.Builder
	for _, r := range list {
		fmt.Fprintf(&text, "    - apiGroups: [%s]\n", cmp.Or(r.group, `""`))
		fmt.Fprintf(&text, "      resources: [%s]\n", strings.Join(r.resources, ", "))
		if r.names != "" {
			fmt.Fprintf(&text, "      resourceNamesFrom: %s\n", r.names)
		}
		fmt.Fprintf(&text, "      verbs: [%s]\n", strings.Join(r.verbs, ", "))
	}
	return text.String()
}

// rightsFile returns the content of the file with one set of RBAC rules. size is the name of the set, such as
// "cluster". The templates of the Helm chart read this file.
func rightsFile(size string) string {
	all := rightsOf(size)
	text := fmt.Sprintf(rightsHead, size)
	for _, at := range []place{everywhere, watched, own, storing, named} {
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
			text += "  " + option + ":\n" + rules(part(all, at, option))
		}
	}
	return text
}
