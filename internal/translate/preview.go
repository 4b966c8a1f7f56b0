package translate

import (
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/hosts"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// giveNames decides again which host gets each alias that the Ingress requests, and each alias that is a host of the
// Ingress. Then it merges the hosts again whose certificate depends on the result. It returns false if stop returned
// true.
func (p *preview) giveNames(names []string, stop func() bool) bool {
	for _, host := range names {
		for _, want := range p.merges[host].merged.Names {
			if stop() {
				return false
			}
			p.give(want.Name)
		}
	}
	var turned []string
	for _, host := range names {
		if before := p.names.namespace(host); p.reconsider(host) != before {
			turned = append(turned, host)
		}
	}
	for _, host := range turned {
		delete(p.merges, host)
		for other := range p.merges {
			if hosts.WildcardOf(other) == host {
				delete(p.merges, other)
			}
		}
	}
	for _, host := range names {
		if stop() {
			return false
		}
		p.mergeHost(host)
	}
	return true
}

// reconsider decides again which host gets the alias host, if it is an alias, and returns the result of namedBy.
func (p *preview) reconsider(host string) string {
	if alias := aliasOf(host); p.names.resolved(alias) != nil {
		p.give(alias)
	}
	return p.namedBy(host)
}

// namedBy returns the namespace that uses a host name as an alias, like names.namespace.
func (p *preview) namedBy(host string) string {
	if given := p.given[aliasOf(host)]; given != nil {
		return given.Namespace
	}
	return p.names.namespace(host)
}

// The method give decides which host gets an alias. Only hosts that the Ingress configures, or has configured until
// now, may request other aliases than before.
func (p *preview) give(name string) {
	if p.given[name] != nil {
		return
	}
	var wants []hosts.Name
	asked := map[string]bool{}
	ask := func(host string) {
		if m := p.merged(host); m != nil && !asked[host] {
			for _, want := range m.Names {
				if want.Name == name {
					wants = append(wants, want)
				}
			}
		}
		asked[host] = true
	}
	if old := p.names.resolved(name); old != nil {
		for _, host := range old.Wanted {
			ask(host)
		}
	}
	for _, host := range hostsOf(p.Result) {
		ask(host)
	}
	naming := p.naming
	naming.Merged = p.merged
	p.given[name] = naming.Resolve(name, wants)
}

// issuanceProblems returns the reasons why no issuer can issue a certificate for hosts of the Ingress.
func (p *preview) issuanceProblems(names []string) (all []report.Problem) {
	for _, host := range names {
		m := p.merges[host].merged
		covered := func(namespace string) bool { return p.answer(hosts.WildcardOf(host)).covers(host, namespace) }
		if c, refusal := fromIssuer(m, covered); refusal != nil && c.Origin == p.ref {
			all = append(all, *refusal)
		}
	}
	return all
}

// answer returns the certificate of a wildcard, like Translator.answerOf.
func (p *preview) answer(wildcard string) *answer {
	m := p.merged(wildcard)
	if m == nil || !strings.HasPrefix(wildcard, "*.") {
		return nil
	}
	switch c, refusal := fromIssuer(m, func(string) bool { return false }); {
	case refusal != nil:
		return nil
	case c != nil:
		return answerWith(p.snapshot, c, true)
	}
	return answerWith(p.snapshot, m.Certificate, false)
}

// balancingProblems returns the problems with load balancing settings that differ between the Ingresses of a backend.
// It omits backends that a canary uses, because the settings of a canary depend on its main Ingresses.
func (p *preview) balancingProblems() (all []report.Problem) {
	if !p.Balances || p.Canary != nil {
		return nil
	}
	for _, id := range p.Backends {
		users := p.users.askingForBalancing(id)
		users = slices.DeleteFunc(users, func(r *ingress.Result) bool { return p.isStored(&r.Contribution) })
		if slices.ContainsFunc(users, func(r *ingress.Result) bool { return r.Canary != nil }) {
			continue
		}
		users = append(users, p.Result)
		slices.SortFunc(users, func(a, b *ingress.Result) int { return snapshot.Older(a.Object, b.Object) })
		all = append(all, isolatingPanics(balance, &ir.Backend{ID: id}, users).problems[p.ref]...)
	}
	return all
}
