package translate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// patterns tracks the total size of the regular expressions in each namespace. If the total size exceeds the limit, the
// regular expressions of the youngest Ingresses of the namespace are rejected.
type patterns struct {
	// most is the maximum total size of the regular expressions in one namespace.
	most       int
	namespaces shrinking.Map[string, *namespacePatterns]
	// changed is the set of namespaces in which the total size of the regular expressions has changed since bound was
	// last called.
	changed shrinking.Map[string, struct{}]
}

type namespacePatterns struct {
	sum     int
	sizes   shrinking.Map[ir.Ref, int]
	refused set[ir.Ref]
}

func newPatterns(most int) *patterns {
	return &patterns{most: most}
}

// count adds size to the total size of the regular expressions of the Ingress ref. A negative size undoes an earlier
// call. Count rejected expressions, too: otherwise the total would fall below the limit once they are rejected, and
// they would be accepted again.
func (p *patterns) count(ref ir.Ref, size int) {
	if size == 0 {
		return
	}
	n := p.namespaces.Get(ref.Namespace)
	if n == nil {
		n = &namespacePatterns{}
		p.namespaces.Set(ref.Namespace, n)
	}
	n.sum += size
	if total := n.sizes.Get(ref) + size; total == 0 {
		n.sizes.Delete(ref)
	} else {
		n.sizes.Set(ref, total)
	}
	p.changed.Set(ref.Namespace, struct{}{})
}

func (p *patterns) countAll(sizes []hosts.PatternSize, sign int) {
	for _, each := range sizes {
		p.count(each.Ingress, sign*each.Size)
	}
}

func (p *patterns) refuses(ref ir.Ref) bool {
	n := p.namespaces.Get(ref.Namespace)
	if n == nil {
		return false
	}
	_, refused := n.refused[ref]
	return refused
}

// contribution returns the settings of an Ingress that are merged into its hosts. If the regular expressions of the
// Ingress are rejected, it returns the settings without them.
func (t *Translator) contribution(ref ir.Ref) *hosts.Contribution {
	c := &t.results.Get(ref).Contribution
	switch {
	case t.patterns.refuses(ref):
		return c.WithoutPatterns()
	case t.aliases.refuses(ref):
		return c.WithoutExpressions()
	}
	return c
}

// boundPatterns enforces the limits on regular expressions. If the expressions of an Ingress become rejected, or are
// accepted again, boundPatterns rebuilds the virtual hosts of the Ingress.
func (t *Translator) boundPatterns(c *change) {
	again := set[string]{}
	for _, p := range []*patterns{t.patterns, t.aliases} {
		t.bound(c, p, again)
	}
	for host := range again {
		c.hosts[host] = struct{}{}
		t.mergeHost(c, host)
	}
	// Rebuilding a host with mergeHost has subtracted and then added the same sizes, so the totals are unchanged, and
	// the limits do not have to be checked again.
	t.patterns.changed.Clear()
}

// The method bound enforces the limit on regular expressions in the namespaces in p.changed. If the expressions of an
// Ingress become rejected, or are accepted again, it adds the hosts of the Ingress to the set again. The caller must
// then rebuild these virtual hosts.
func (t *Translator) bound(c *change, p *patterns, again set[string]) {
	for namespace := range p.changed.Keys() {
		n := p.namespaces.Get(namespace)
		before := n.refused
		n.refused = t.overPatterns(n, p.most)
		if n.sizes.Len() == 0 {
			p.namespaces.Delete(namespace)
		}
		for _, refs := range []set[ir.Ref]{before, n.refused} {
			for ref := range refs {
				_, was := before[ref]
				_, is := n.refused[ref]
				if r := t.results.Get(ref); r != nil && was != is {
					c.objects[ref] = struct{}{}
					again.add(maps.Keys(r.Paths))
					if r.Fallback != nil {
						again[""] = struct{}{}
						again.add(t.ofHost.keys())
					}
				}
			}
		}
	}
	p.changed.Clear()
}

// overPatterns returns the Ingresses of a namespace whose regular expressions must be rejected: the oldest Ingress with
// which the total size exceeds the limit, and all younger Ingresses.
func (t *Translator) overPatterns(n *namespacePatterns, most int) set[ir.Ref] {
	if n.sum <= most {
		return nil
	}
	over, sum := set[ir.Ref]{}, 0
	for _, ref := range slices.SortedFunc(n.sizes.Keys(), func(a, b ir.Ref) int {
		return snapshot.Older(t.results.Get(a).Object, t.results.Get(b).Object)
	}) {
		if sum += n.sizes.Get(ref); sum > most {
			over[ref] = struct{}{}
		}
	}
	return over
}

// patternProblem returns the problem to report for an Ingress whose regular expressions are rejected. It returns nil
// for other Ingresses.
func (t *Translator) patternProblem(ref ir.Ref) *report.Problem {
	switch {
	case t.patterns.refuses(ref):
	case t.aliases.refuses(ref):
		return &report.Problem{
			Severity: report.Error, Reason: report.QuotaExceeded, Field: report.AnnotationField(report.ServerAlias),
			Message: fmt.Sprintf(
				"the compiled regular expressions in all server-alias annotations of the namespace %s may have at "+
					"most %d instructions, and older Ingresses come first: the expressions of this Ingress are "+
					"ignored. Write fewer or shorter expressions, or names and wildcards",
				ref.Namespace, pattern.MaxNamesSize),
		}
	default:
		return nil
	}
	outcome := "paths of this Ingress that are regular expressions are ignored, or get 503 if they may restrict access"
	if t.results.Get(ref).PatternSize > 0 {
		outcome = "requests for its paths get 503"
	}
	return &report.Problem{
		Severity: report.Error, Reason: report.QuotaExceeded, Field: "spec", Message: fmt.Sprintf(
			"the compiled regular expressions of the namespace %s may have at most %d instructions together, and "+
				"older Ingresses come first: write fewer or shorter expressions; until then, %s", ref.Namespace,
			pattern.MaxNamespaceSize, outcome),
	}
}
