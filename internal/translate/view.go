package translate

import (
	"slices"
	"strings"

	"github.com/tidwall/btree"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/hosts"
	"github.com/k8singress/k8singress/internal/translate/ingress"
	"github.com/k8singress/k8singress/internal/translate/ownership"
)

// inputs maps each host to the last merge of its settings. The map can be copied in constant time.
type inputs struct {
	hosts btree.Map[string, merge]
}

// merge is the result of merging the settings for a host, with the objects that configure it. It is immutable.
type merge struct {
	contributions []*hosts.Contribution
	merged        *hosts.Merged
}

// The method note stores the last merge of a host. It does nothing if n is nil.
func (n *inputs) note(host string, list []*hosts.Contribution, merged *hosts.Merged) {
	switch {
	case n == nil:
	case len(list) == 0 && merged.Host == nil:
		n.hosts.Delete(host)
	default:
		n.hosts.Set(host, merge{list, merged})
	}
}

// View is an immutable view of a translation. It shows what an Ingress that does not exist yet would change. Its
// methods are safe for concurrent use.
type View struct {
	snapshot  *snapshot.Snapshot
	options   ingress.Options
	policy    ownership.Policy
	naming    hosts.Naming
	names     *names
	users     *users
	fallbacks []*hosts.Contribution
	inputs    inputs
	// namespaces lists the namespaces whose objects are read. Empty means all namespaces.
	namespaces []string
	// AnyPathType is true if the ConfigMap sets strict-validate-path-type to false.
	AnyPathType bool
	// IgnoresSnippets is true if the administrator has set "snippets ignore".
	IgnoresSnippets bool
	// Ingresses is the number of Ingresses of the translation, including Ingresses of other controllers.
	Ingresses int
}

// View returns a view of the last translation, which was of the snapshot s. The option Views must be set.
func (t *Translator) View(s *snapshot.Snapshot) *View {
	objects := *s
	objects.Changed = nil
	return &View{
		snapshot: &objects, options: t.defaults.ingress, policy: t.options.Ownership,
		naming: t.naming(), names: &names{given: *t.names.given.Copy()}, users: t.users.copy(),
		fallbacks:       t.contributions(t.fallbacks.Keys()),
		inputs:          inputs{*t.inputs.hosts.Copy()},
		namespaces:      t.options.Namespaces,
		AnyPathType:     t.defaults.anyPathType,
		IgnoresSnippets: t.options.Ingress.Defaults.IgnoreSnippets, Ingresses: t.results.Len(),
	}
}

// Preview is the part of the translation that depends on a new version of one Ingress.
type Preview struct {
	// Ours is false if another controller serves the Ingress, or if the namespace of the Ingress is not watched.
	Ours bool
	// Problems are the problems in the verdict that the Ingress would get, except limits that several Ingresses of a
	// namespace share, and conflicts about the load balancing of backends that canaries use. Annotations is the part of
	// them that is described at ingress.Result.
	Problems, Annotations []report.Problem
	// Taken are the paths that another Ingress has already.
	Taken []Taken
}

// Preview translates a new version of an Ingress, and merges its settings with the settings of all other Ingresses. It
// calls stop before each step. If stop returns true, Preview gives up and returns nil.
func (v *View) Preview(object *networkingv1.Ingress, stop func() bool) *Preview {
	if len(v.namespaces) > 0 && !slices.Contains(v.namespaces, object.Namespace) {
		return &Preview{}
	}
	r := ingress.Translate(v.snapshot, object, v.options)
	p := &preview{View: v, Result: r, ref: refOf(object), merges: map[string]merge{}, given: map[string]*hosts.Named{}}
	if !r.Ours {
		return &Preview{Problems: r.Problems, Annotations: r.Annotations}
	}
	names := hostsOf(r)
	for _, host := range names {
		if stop() {
			return nil
		}
		p.mergeHost(host)
	}
	if !p.giveNames(names, stop) {
		return nil
	}
	result := &Preview{Ours: true, Problems: p.problems(names), Annotations: r.Annotations}
	for _, host := range names {
		if stop() {
			return nil
		}
		result.Taken = append(result.Taken, p.taken(host, p.merges[host])...)
	}
	return result
}

// preview is the state of one call to Preview.
type preview struct {
	*View
	*ingress.Result
	ref ir.Ref
	// merges are the new merges of hosts.
	merges map[string]merge
	// given are the new results for aliases that the new version affects.
	given map[string]*hosts.Named
}

// problems returns the problems of the Ingress in the order of Translator.verdict. names are its hosts.
func (p *preview) problems(names []string) []report.Problem {
	all := append(slices.Clone(p.Result.Problems), certificateProblems(p.Result, p.passedIn)...)
	if void := voidWithPassthrough(p.Result, p.passedIn); void != nil {
		all = append(all, *void)
	}
	given := func(name string) *hosts.Named { return p.given[name] }
	all = append(all, nameProblems(p.Result, p.ref, p.merged, given)...)
	for _, host := range names {
		all = append(all, p.merges[host].merged.Problems[p.ref]...)
	}
	all = append(all, p.issuanceProblems(names)...)
	return append(all, p.balancingProblems()...)
}

// mergeHost merges the settings of a host again, with the new version of the Ingress in place of the stored one.
func (p *preview) mergeHost(host string) *hosts.Merged {
	if done, ok := p.merges[host]; ok {
		return done.merged
	}
	old, _ := p.inputs.hosts.Get(host)
	list := p.without(old.contributions)
	if _, certificate := p.Certificates[host]; certificate || p.Rules(host) {
		list = append(list, &p.Contribution)
	}
	fallbacks := p.without(p.fallbacks)
	if p.Fallback != nil {
		fallbacks = append(fallbacks, &p.Contribution)
	}
	m := merge{list, hosts.MergeIsolatingPanics(host, list, fallbacks, p.around(host))}
	p.merges[host] = m
	return m.merged
}

// without returns a copy of a list without the stored version of the Ingress.
func (p *preview) without(list []*hosts.Contribution) []*hosts.Contribution {
	others := make([]*hosts.Contribution, 0, len(list)+1)
	for _, c := range list {
		if !p.isStored(c) {
			others = append(others, c)
		}
	}
	return others
}

// isStored reports whether c is the stored version of the Ingress.
func (p *preview) isStored(c *hosts.Contribution) bool {
	return c.Object.GetName() == p.Object.Name && c.Object.GetNamespace() == p.Object.Namespace
}

// The method around returns the information about related hosts, like the method of Translator with this name.
func (p *preview) around(host string) *hosts.HostContext {
	s := &hosts.HostContext{Policy: p.policy, NamedBy: p.namedBy(host)}
	if strings.HasPrefix(host, "*.") {
		s.Below = p.below(host)
	} else if above := hosts.WildcardOf(host); above != "" {
		s.Above = p.merged(above)
	}
	return s
}

// The method merged returns the merged settings of a host, or nil if they are empty. It merges them again if the stored
// version or the new version of the Ingress configures the host.
func (p *preview) merged(host string) *hosts.Merged {
	m := p.latest(host)
	if m == nil || m.Empty() {
		return nil
	}
	return m
}

// latest is like merged, but the result may be empty.
func (p *preview) latest(host string) *hosts.Merged {
	if done, ok := p.merges[host]; ok {
		return done.merged
	}
	if above := hosts.WildcardOf(host); p.touches(host) || above != "" && p.touches(above) {
		return p.mergeHost(host)
	}
	old, _ := p.inputs.hosts.Get(host)
	return old.merged
}

// touches reports whether the stored version or the new version of the Ingress affects the settings of a host, other
// than by the wildcard that covers the host.
func (p *preview) touches(host string) bool {
	if _, certificate := p.Certificates[host]; certificate || p.Rules(host) {
		return true
	}
	if host == "" && (p.Fallback != nil || slices.ContainsFunc(p.fallbacks, p.isStored)) {
		return true
	}
	old, _ := p.inputs.hosts.Get(host)
	return slices.ContainsFunc(old.contributions, p.isStored) || p.admitsCertificate(host, old.contributions)
}

// admitsCertificate reports whether the Ingress has a rule for a host below a wildcard, and another Ingress has a
// certificate for the wildcard. This may be the first rule with which the other Ingress may provide the certificate.
func (p *preview) admitsCertificate(wildcard string, list []*hosts.Contribution) bool {
	if !strings.HasPrefix(wildcard, "*.") ||
		!slices.ContainsFunc(list, func(c *hosts.Contribution) bool { return c.Certificates[wildcard] != nil }) {
		return false
	}
	for host := range p.Paths {
		if hosts.WildcardOf(host) == wildcard {
			return true
		}
	}
	return false
}

// below returns the number of rules that each namespace has for hosts below a wildcard. It iterates over all hosts,
// which is acceptable, because few Ingresses have wildcards.
func (p *preview) below(wildcard string) *shrinking.Map[string, int] {
	counts, suffix := &shrinking.Map[string, int]{}, wildcard[1:]
	count := func(host string, c *hosts.Contribution) {
		if label, ok := strings.CutSuffix(host, suffix); ok && !strings.ContainsAny(label, ".*") && label != "" &&
			c.Canary == nil && c.Rules(host) {
			counts.Set(c.Object.GetNamespace(), counts.Get(c.Object.GetNamespace())+1)
		}
	}
	p.inputs.hosts.Scan(func(host string, m merge) bool {
		for _, c := range m.contributions {
			if !p.isStored(c) {
				count(host, c)
			}
		}
		return true
	})
	for host := range p.Paths {
		count(host, &p.Contribution)
	}
	return counts
}

// passedIn is like the method of Translator with this name.
func (p *preview) passedIn(host string) string {
	if m := p.latest(host); m != nil {
		return m.PassedIn
	}
	return ""
}
