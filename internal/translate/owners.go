package translate

import (
	"maps"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/translate/hosts"
	"github.com/k8singress/k8singress/internal/translate/ingress"
	"github.com/k8singress/k8singress/internal/translate/ownership"
)

// noteBelow adds 1 to the number of rules below the wildcard that covers the host, or subtracts 1 if r is no longer the
// current result. A certificate that a namespace lists for the wildcard applies only while the namespace has such a
// rule.
func (t *Translator) noteBelow(c *change, host string, r *ingress.Result) {
	wildcard := hosts.WildcardOf(host)
	if wildcard == "" || r.Canary != nil {
		return
	}
	namespaces, namespace, more := t.below[wildcard], r.Object.Namespace, -1
	if namespaces == nil {
		namespaces = map[string]int{}
		t.below[wildcard] = namespaces
	}
	if t.results[refOf(r.Object)] == r {
		more = 1
	}
	before := namespaces[namespace]
	after := before + more
	if namespaces[namespace] = after; after == 0 {
		delete(namespaces, namespace)
	}
	if len(namespaces) == 0 {
		delete(t.below, wildcard)
	}
	if _, listed := t.ofHost[wildcard]; listed && before*after == 0 {
		c.hosts[wildcard] = struct{}{}
	}
}

// around returns the context in which a host is merged. The wildcard above the host must be merged first.
func (t *Translator) around(host string) *hosts.HostContext {
	s := &hosts.HostContext{Policy: t.options.Ownership, NamedBy: t.names.namespace(host)}
	if strings.HasPrefix(host, "*.") {
		s.Below = t.below[host]
	} else if above := hosts.WildcardOf(host); above != "" {
		s.Above = t.merged[above]
	}
	return s
}

// ownerOf returns the owner of a host, even if no rule names the host.
func (t *Translator) ownerOf(host string) ownership.Owner {
	if m := t.merged[host]; m != nil {
		return m.Owner
	}
	above := ownership.Owner{}
	if m := t.merged[hosts.WildcardOf(host)]; m != nil {
		above = m.Owner
	}
	return t.options.Ownership.Of(host, func(func(kinds.Object) bool) {}, above)
}

// mergeHosts merges the touched hosts. Wildcards are merged first, because the hosts below depend on the settings of
// their owners, and are touched if these settings change.
func (t *Translator) mergeHosts(c *change) {
	turned := set[string]{}
	for host := range c.hosts {
		if !strings.HasPrefix(host, "*.") {
			continue
		}
		before := t.merged[host]
		t.mergeHost(c, host)
		if !t.sameAbove(before, t.merged[host]) {
			turned[host] = struct{}{}
		}
	}
	t.touchBelow(c, turned)
	for host := range c.hosts {
		if !strings.HasPrefix(host, "*.") {
			t.mergeHost(c, host)
		}
	}
}

// touchBelow touches the hosts that wildcards cover. It iterates over all hosts, but is rarely called.
func (t *Translator) touchBelow(c *change, wildcards set[string]) {
	if len(wildcards) == 0 {
		return
	}
	for host := range t.ofHost {
		if _, ok := wildcards[hosts.WildcardOf(host)]; ok {
			c.hosts[host] = struct{}{}
		}
	}
}

// sameAbove reports whether two versions of a wildcard have the same effect on the hosts below it. Either may be nil.
func (t *Translator) sameAbove(a, b *hosts.Merged) bool {
	if a == nil || b == nil {
		return a == b
	}
	same := a.Owner.Namespace == b.Owner.Namespace
	if t.options.Ownership.Exclusive {
		same = a.Owner.Same(b.Owner)
	}
	return same && a.Secure == b.Secure &&
		maps.EqualFunc(a.Others, b.Others, func(x, y *ir.Certificate) bool { return *x == *y })
}
