package translate

import (
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/btree"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/hosts"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// names tracks which aliases Ingresses request for their hosts, and which host gets each alias.
type names struct {
	// The field wanted maps each alias to the hosts that request the alias.
	wanted shrinking.Map[string, *shrinking.Map[string, struct{}]]
	// The field given maps each alias to the host that gets it, as decided by hosts.Naming.Resolve. It is a tree,
	// because View copies it.
	given btree.Map[string, *hosts.Named]
	// touched contains the aliases for which Resolve must be called again, because another host may now get the alias.
	touched shrinking.Map[string, struct{}]
}

// The method note updates n.wanted and n.touched after the settings of a host were merged again. old and next are the
// previous and the new result of hosts.Merge for the host. old may be nil.
func (n *names) note(host string, old, next *hosts.Merged) {
	if old != nil {
		for _, name := range old.Names {
			n.touched.Set(name.Name, struct{}{})
			if by := n.wanted.Get(name.Name); by != nil {
				if by.Delete(host); by.Len() == 0 {
					n.wanted.Delete(name.Name)
				}
			}
		}
	}
	for _, name := range next.Names {
		n.touched.Set(name.Name, struct{}{})
		by := n.wanted.Get(name.Name)
		if by == nil {
			by = &shrinking.Map[string, struct{}]{}
			n.wanted.Set(name.Name, by)
		}
		by.Set(host, struct{}{})
	}
}

// namespace returns the namespace that uses a host name as an alias, or "" if the name is not an alias.
func (n *names) namespace(host string) string {
	if given := n.of(host); given != nil {
		return given.Namespace
	}
	return ""
}

// names.of returns the result of Resolve for the alias that requires a certificate for host, or nil if no alias does.
func (n *names) of(host string) *hosts.Named { return n.resolved(aliasOf(host)) }

// names.resolved returns the result of Resolve for an alias, or nil if no Ingress requests the alias.
func (n *names) resolved(alias string) *hosts.Named {
	given, _ := n.given.Get(alias)
	return given
}

// aliasOf returns the alias that requires a certificate for host, or "" if no alias can do so. For example, the alias
// **.example.com requires a certificate for *.example.com.
func aliasOf(host string) string {
	switch {
	case strings.HasPrefix(host, "*."):
		return "*" + host
	case hosts.CertificateHost(host) != host:
		return ""
	}
	return host
}

// The method around adds to n.touched the aliases that may be affected by the changed hosts: aliases that are also the
// name of a changed host, and aliases that are covered by a changed wildcard or by the host "".
func (n *names) around(c *change) {
	if n.wanted.Len() == 0 {
		return
	}
	many := false
	for host := range c.hosts {
		many = many || host == "" || strings.HasPrefix(host, "*.")
		if n.wanted.Has(host) {
			n.touched.Set(host, struct{}{})
		}
	}
	if !many {
		return
	}
	for name := range n.wanted.Keys() {
		for _, other := range []string{hosts.CertificateHost(name), hosts.WildcardOf(name), ""} {
			if _, changed := c.hosts[other]; changed {
				n.touched.Set(name, struct{}{})
			}
		}
	}
}

// giveNames determines again which host gets each of the aliases in t.names.touched. All changed hosts must have been
// merged before. If an alias now belongs to another namespace and a host has the same name as the alias, this host is
// merged again, because its certificate depends on the namespace.
func (t *Translator) giveNames(c *change) {
	t.names.around(c)
	naming := t.naming()
	naming.Merged = t.mergedHost
	for t.names.touched.Len() > 0 {
		touched := slices.Sorted(t.names.touched.Keys())
		t.names.touched.Clear()
		for _, name := range touched {
			host := hosts.CertificateHost(name)
			before := t.names.namespace(host)
			t.give(c, &naming, name)
			c.hosts[name], c.hosts[host] = struct{}{}, struct{}{}
			if t.ofHost.has(host) && before != t.names.namespace(host) {
				t.mergeNamed(c, host)
			}
		}
	}
}

// mergeNamed merges a host again after the namespace that uses the host's name as an alias has changed. If the host is
// a wildcard, the hosts below it are also merged again if necessary.
func (t *Translator) mergeNamed(c *change, host string) {
	before := t.merged.Get(host)
	t.mergeHost(c, host)
	if !strings.HasPrefix(host, "*.") || t.sameAbove(before, t.merged.Get(host)) {
		return
	}
	for below := range t.ofHost.keys() {
		if hosts.WildcardOf(below) == host {
			c.hosts[below] = struct{}{}
			t.mergeHost(c, below)
		}
	}
}

func (t *Translator) give(c *change, naming *hosts.Naming, name string) {
	if old := t.names.resolved(name); old != nil {
		c.objects.add(maps.Keys(old.Problems))
	}
	var wants []hosts.Name
	for host := range t.names.wanted.Get(name).Keys() {
		for _, want := range t.merged.Get(host).Names {
			if want.Name == name {
				wants = append(wants, want)
			}
		}
	}
	if wants == nil {
		t.names.given.Delete(name)
		return
	}
	next := naming.Resolve(name, wants)
	t.names.given.Set(name, next)
	c.objects.add(maps.Keys(next.Problems))
}

// naming returns the rules for aliases, without the field Merged.
func (t *Translator) naming() hosts.Naming {
	return hosts.Naming{Policy: t.options.Ownership, NoCatchAll: t.options.Ingress.DisableCatchAll}
}

func (t *Translator) mergedHost(host string) *hosts.Merged { return t.merged.Get(host) }

// nameProblems returns the problems with the aliases that an Ingress requests for its hosts. merged returns the merged
// settings of a host, or nil, and given the result of Resolve for an alias, or nil.
func nameProblems(r *ingress.Result, ref ir.Ref, merged func(host string) *hosts.Merged,
	given func(name string) *hosts.Named) (all []report.Problem) {
	said := map[string]bool{}
	for _, host := range slices.Sorted(maps.Keys(r.Paths)) {
		m := merged(host)
		if m == nil {
			continue
		}
		for _, want := range m.Names {
			if g := given(want.Name); g != nil && !said[want.Name] && snapshot.RefOf(want.By) == ref {
				said[want.Name] = true
				all = append(all, g.Problems[ref]...)
			}
		}
	}
	return all
}
