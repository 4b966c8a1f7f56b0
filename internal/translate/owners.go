package translate

import (
	"maps"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/translate/hosts"
	"github.com/k8singress/k8singress/internal/translate/ingress"
	"github.com/k8singress/k8singress/internal/translate/ownership"
)

// noteBelow updates the number of rules that a namespace has for hosts below a wildcard. It adds 1 if r is the current
// result of an Ingress, and subtracts 1 if r is an outdated result. A namespace can only provide a certificate for the
// wildcard if the number is not zero. So if the number changes from or to zero, the wildcard must be merged again.
func (t *Translator) noteBelow(c *change, host string, r *ingress.Result) {
	wildcard := hosts.WildcardOf(host)
	if wildcard == "" || r.Canary != nil {
		return
	}
	namespaces, namespace, more := t.below.Get(wildcard), r.Object.Namespace, -1
	if namespaces == nil {
		namespaces = &shrinking.Map[string, int]{}
		t.below.Set(wildcard, namespaces)
	}
	if t.results.Get(refOf(r.Object)) == r {
		more = 1
	}
	before := namespaces.Get(namespace)
	after := before + more
	if after == 0 {
		namespaces.Delete(namespace)
	} else {
		namespaces.Set(namespace, after)
	}
	if namespaces.Len() == 0 {
		t.below.Delete(wildcard)
	}
	if t.ofHost.has(wildcard) && before*after == 0 {
		c.hosts[wildcard] = struct{}{}
	}
}

// The method around returns the information about related hosts that is needed to merge a host. The wildcard that
// covers the host must have been merged before.
func (t *Translator) around(host string) *hosts.HostContext {
	s := &hosts.HostContext{Policy: t.options.Ownership, NamedBy: t.names.namespace(host)}
	if strings.HasPrefix(host, "*.") {
		s.Below = t.below.Get(host)
	} else if above := hosts.WildcardOf(host); above != "" {
		s.Above = t.merged.Get(above)
	}
	return s
}

// ownerOf returns the owner of a host. It also works for a host without a rule.
func (t *Translator) ownerOf(host string) ownership.Owner {
	if m := t.merged.Get(host); m != nil {
		return m.Owner
	}
	above := ownership.Owner{}
	if m := t.merged.Get(hosts.WildcardOf(host)); m != nil {
		above = m.Owner
	}
	return t.options.Ownership.Of(host, func(func(kinds.Object) bool) {}, above)
}

// mergeHosts merges the hosts that changed. It starts with wildcards. If the result for a wildcard affects the hosts
// below it, these hosts are merged as well.
func (t *Translator) mergeHosts(c *change) {
	turned := set[string]{}
	for host := range c.hosts {
		if !strings.HasPrefix(host, "*.") {
			continue
		}
		before := t.merged.Get(host)
		t.mergeHost(c, host)
		if !t.sameAbove(before, t.merged.Get(host)) {
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

// touchBelow adds all hosts below the given wildcards to c.hosts. It iterates over all hosts. This is acceptable,
// because wildcards rarely change.
func (t *Translator) touchBelow(c *change, wildcards set[string]) {
	if len(wildcards) == 0 {
		return
	}
	for host := range t.ofHost.keys() {
		if _, ok := wildcards[hosts.WildcardOf(host)]; ok {
			c.hosts[host] = struct{}{}
		}
	}
}

// sameAbove reports whether nothing changes for the hosts below a wildcard if the result of hosts.Merge for the
// wildcard changes from a to b. Both may be nil.
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
