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
	case len(list) == 0:
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
	names     *names
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
		names:           &names{given: *t.names.given.Clone()},
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
	// Problems are the problems of the Ingress. They lack problems that several Ingresses have together, such as limits
	// of a namespace. Annotations is the part of them that is described at ingress.Result.
	Problems, Annotations []report.Problem
	// Taken are the paths that another Ingress has already.
	Taken []Taken
}

// preview is the state of one call to Preview.
type preview struct {
	*View
	*ingress.Result
	ref ir.Ref
	// merges are the new merges of hosts.
	merges map[string]merge
}

// Preview translates a new version of an Ingress, and merges its settings with the settings of all other Ingresses. It
// calls stop before each step. If stop returns true, Preview gives up and returns nil.
func (v *View) Preview(object *networkingv1.Ingress, stop func() bool) *Preview {
	if len(v.namespaces) > 0 && !slices.Contains(v.namespaces, object.Namespace) {
		return &Preview{}
	}
	r := ingress.Translate(v.snapshot, object, v.options)
	p := &preview{View: v, Result: r, ref: refOf(object), merges: map[string]merge{}}
	result := &Preview{Ours: r.Ours, Problems: r.Problems, Annotations: r.Annotations}
	if !r.Ours {
		return result
	}
	names := hostsOf(r)
	for _, host := range names {
		if stop() {
			return nil
		}
		p.mergeHost(host)
	}
	result.Problems = append(result.Problems, certificateProblems(r, p.passedIn)...)
	if void := voidWithPassthrough(r, p.passedIn); void != nil {
		result.Problems = append(result.Problems, *void)
	}
	for _, host := range names {
		if stop() {
			return nil
		}
		m := p.merges[host]
		result.Problems = append(result.Problems, m.merged.Problems[p.ref]...)
		result.Taken = append(result.Taken, p.taken(host, m)...)
	}
	return result
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
	s := &hosts.HostContext{Policy: p.policy, NamedBy: p.names.namespace(host)}
	if strings.HasPrefix(host, "*.") {
		s.Below = p.below(host)
	} else if above := hosts.WildcardOf(host); above != "" {
		s.Above = p.above(above)
	}
	return s
}

// above returns the merged settings of a wildcard, or nil if no Ingress has it.
func (p *preview) above(wildcard string) *hosts.Merged {
	old, ok := p.inputs.hosts.Get(wildcard)
	_, certificate := p.Certificates[wildcard]
	if certificate || p.Rules(wildcard) || slices.ContainsFunc(old.contributions, p.isStored) {
		return p.mergeHost(wildcard)
	}
	if !ok {
		return nil
	}
	return old.merged
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
	if m, ok := p.merges[host]; ok {
		return m.merged.PassedIn
	}
	if m, ok := p.inputs.hosts.Get(host); ok {
		return m.merged.PassedIn
	}
	return ""
}
