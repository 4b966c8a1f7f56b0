package kinds

import "slices"

// place selects the Role or ClusterRole that contains an RBAC rule.
type place string

// The values of place.
const (
	everywhere place = "cluster" // in a ClusterRole
	watched    place = "watched" // in a Role in each watched namespace, or in the ClusterRole if there is one
	own        place = "own"     // in a Role in the namespace of the controller
	storing    place = "storage" // in a Role in the namespace of the storage of certificates
	named      place = "named"   // in a Role in a namespace that is not watched, for an object that an option names
)

// These are the names of the generated sets of RBAC rules, which are called sizes. The administrator installs one of
// the sets. Each set grants fewer permissions than the set before it.
const (
	cluster    = "cluster"
	namespaces = "namespaces"
	minimal    = "least"
)

var sizes = []string{cluster, namespaces, minimal}

// This value of right.part marks the RBAC rules that the controller needs whatever its options are.
const always = "always"

// The constant publishNodes marks the RBAC rules that are needed only for the option publish_nodes. These rules require
// a ClusterRole, since nodes are cluster-scoped.
const publishNodes = "publish_nodes"

// The constant storageCopy marks the RBAC rule that is needed only for the option copy_from of `storage kubernetes`. If
// there is a ClusterRole, the rule is left out, because the ClusterRole already grants the permission.
const storageCopy = "storage_copy"

// The constant admissionWebhook marks the RBAC rules that are needed only for the option admission_webhook, if the
// controller creates the certificate authority of the webhook. One of them requires a ClusterRole, but is limited to
// one object by its name.
const admissionWebhook = "admission_webhook"

// right is one RBAC rule.
type right struct {
	place place
	// part is the Caddyfile option that needs this RBAC rule, or the constant always if the rule is needed whatever the
	// options are.
	part      string
	group     string
	resources []string
	// names describes where the names in the rule's resourceNames come from, such as the option election_id. If it is
	// empty, the rule has no resourceNames and applies to all objects.
	names string
	// If minimalNames is not empty, it is used instead of the field names in the smallest set of RBAC rules, "minimal".
	minimalNames string
	verbs        []string
}

// The variable read lists the RBAC verbs that an informer needs. The variable store lists the RBAC verbs that the
// certificate storage needs.
var (
	read  = []string{"list", "watch"}
	store = []string{"get", "list", "watch", "create", "update", "delete"}
)

// The function rights returns all RBAC rules of the controller, in the order in which they are printed.
func rights() []right {
	all := reading(watched, always, read,
		func(k Kind) (string, bool) { return k.Resource, !k.ClusterScoped && !k.Optional && k.Name != Secret })
	all = append(all, right{place: watched, part: always, resources: []string{"secrets"},
		minimalNames: "secrets", verbs: read})
	all = append(all, reading(watched, always, []string{"patch"},
		func(k Kind) (string, bool) { return k.Resource + "/status", k.WritesStatus })...)
	all = append(all, reading(everywhere, always, read,
		func(k Kind) (string, bool) { return k.Resource, k.ClusterScoped && !k.Optional })...)
	all = append(all, reading(everywhere, "namespace_selector", read,
		func(k Kind) (string, bool) { return k.Resource, k.Name == Namespace })...)
	all = append(all, reading(everywhere, publishNodes, read,
		func(k Kind) (string, bool) { return k.Resource, k.Name == Node })...)
	all = append(all, reading(own, publishNodes, read,
		func(k Kind) (string, bool) { return k.Resource, k.Name == Pod })...)
	return append(all,
		right{place: watched, part: always, group: "events.k8s.io", resources: []string{"events"},
			verbs: []string{"create"}},
		right{place: own, part: always, group: "events.k8s.io", resources: []string{"events"},
			verbs: []string{"create"}},

		right{place: own, part: "election_id", group: "coordination.k8s.io", resources: []string{"leases"},
			verbs: []string{"create"}},
		// This rule is limited to our Lease by its name, because other controllers in the namespace may use Leases,
		// too.
		right{
			place: own, part: "election_id", group: "coordination.k8s.io", resources: []string{"leases"},
			names: "election_id", verbs: []string{"get", "update"},
		},
		// These rules apply to all Secrets and Leases in the namespace, because RBAC cannot restrict by name which
		// objects are created.
		right{place: storing, part: "storage", group: "coordination.k8s.io", resources: []string{"leases"},
			verbs: store},
		right{place: storing, part: "storage", resources: []string{"secrets"}, verbs: store},
		right{place: own, part: storageCopy, resources: []string{"secrets"}, verbs: []string{"list"}},
		right{place: own, part: "publish_ports", resources: []string{"services"}, names: "publish_service",
			verbs: []string{"patch"}},
		right{place: own, part: "publish_ports", resources: []string{"pods"}, verbs: []string{"get"}},
		right{
			place: everywhere, part: admissionWebhook, group: "admissionregistration.k8s.io",
			resources: []string{"validatingwebhookconfigurations"}, names: admissionWebhook,
			verbs: []string{"get", "list", "watch", "patch"},
		},
		// There is no right to create Secrets, since RBAC cannot restrict by name which ones. The chart creates an
		// empty Secret.
		right{place: own, part: admissionWebhook, resources: []string{"secrets"}, names: "admission_secret",
			verbs: []string{"get", "list", "watch", "update"}},

		right{place: named, part: always, resources: []string{"configmaps"}, names: "configmaps", verbs: read},
		right{place: named, part: always, resources: []string{"services"}, names: "services", verbs: read},
		right{place: named, part: always, resources: []string{"secrets"}, names: "secrets", verbs: read},
		right{place: named, part: always, group: "events.k8s.io", resources: []string{"events"},
			verbs: []string{"create"}},
	)
}

// reading returns RBAC rules with the given verbs: one rule for each API group, in the order of All. The callback
// resource returns the resource name of a kind, such as "ingresses". It returns false to leave the kind out.
func reading(at place, part string, verbs []string, resource func(Kind) (name string, ok bool)) []right {
	var all []right
	for _, k := range All {
		name, ok := resource(k)
		if !ok {
			continue
		}
		i := slices.IndexFunc(all, func(r right) bool { return r.group == k.GroupVersion.Group })
		if i < 0 {
			i = len(all)
			all = append(all, right{place: at, part: part, group: k.GroupVersion.Group, verbs: verbs})
		}
		all[i].resources = append(all[i].resources, name)
	}
	return all
}

// rightsOf returns the RBAC rules for an installation of the given size. If the size is cluster, the ClusterRole also
// contains the rules for watched namespaces, and the rules that are only necessary without a ClusterRole are left out.
func rightsOf(size string) []right {
	all := rights()
	if size != cluster {
		all = slices.DeleteFunc(all, func(r right) bool {
			return r.place == everywhere && r.part != admissionWebhook || r.part == publishNodes
		})
	}
	for i := range all {
		if all[i].place == watched && size == cluster {
			all[i].place = everywhere
		}
		if size == minimal && all[i].minimalNames != "" {
			all[i].names = all[i].minimalNames
		}
	}
	if size == cluster {
		all = slices.DeleteFunc(all, func(r right) bool {
			return r.place == named || r.place == own && (r.part == always || r.part == storageCopy)
		})
	}
	return all
}

// The function part filters a list of RBAC rules: it returns the rules with the given place and option.
func part(all []right, at place, option string) []right {
	return slices.DeleteFunc(slices.Clone(all), func(r right) bool { return r.place != at || r.part != option })
}
