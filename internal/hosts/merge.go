package hosts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/ownership"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// Merged is one host, and what Merge says of the Ingresses that have it.
type Merged struct {
	Host *ir.VirtualHost
	// Owner is the namespace that has the host. What holds for the host as a whole is its word alone.
	Owner ownership.Owner
	// Certificate is nil for a host that no Ingress lists in an entry of tls. Absent says that its Secret does not exist.
	Certificate *ir.Certificate
	Absent      bool
	// Others are the certificates that other namespaces list for a wildcard. Each is for the hosts of its own namespace only.
	Others map[string]*ir.Certificate
	// Implied is for a host that is not listed, or nil. It counts where no wildcard answers for the host.
	Implied *Implied
	// Secure says that the owner wants the host to be asked by HTTPS.
	Secure bool
	// PassedIn is the namespace whose Ingresses hand the TLS connections of the host on; it is empty where TLS ends here.
	PassedIn string
	// Names are those that the owner wants the host to have besides. It is nil for most.
	Names []Name
	// Mains are the main objects whose requests a canary shares with one of its backends; it is nil without canaries.
	Mains map[CanaryBackend][]ir.Ref
	// PatternSizes are what the regular expressions that are paths come to, whether they are taken or not. It is nil without.
	PatternSizes []PatternSize
	// Problems is nil where there are none.
	Problems map[ir.Ref][]report.Problem
}

// merging is one host in the hands of Merge.
type merging struct {
	Merged
	around *Surroundings
	// regex has the namespaces whose paths are regular expressions on this host. It is nil where there are none.
	regex map[string]bool
	// results and fallbacks are what the host is merged of.
	results, fallbacks []*Contribution
	// secure is Secure of the host or of the wildcard above.
	secure bool
	taken  map[ir.PathMatch]claim
	// conflicting are the objects whose paths answer 403, because another object decides about the client certificates of the host.
	conflicting map[*Contribution]bool
	patterns    patterns
}

// claim is a path that answers, the object that has it, and the route that it has become.
type claim struct {
	by    *Contribution
	path  *Path
	route *ir.Route
	// canary shares the requests; it is nil for most paths.
	canary *Contribution
}

// Merge joins what Ingresses say of a host. For a path the oldest one wins where two say different things, for the host as a whole
// the oldest one of the owner; the other is told. The fallbacks of the owner answer for what no path of the host matches, and for
// every host those of all; the first of them counts.
func Merge(host string, results []*Contribution, fallbacks []*Contribution, around *Surroundings) *Merged {
	return around.merge(host, results, fallbacks, around.owner(host, results, fallbacks))
}

func (s *Surroundings) merge(host string, results, fallbacks []*Contribution, owner ownership.Owner) *Merged {
	results, canaries := mains(results)
	fallbacks, fallbackCanaries := mains(fallbacks)
	m := &merging{taken: map[ir.PathMatch]claim{}, around: s, results: results, fallbacks: fallbacks}
	m.Host, m.Owner = &ir.VirtualHost{Host: host}, owner
	m.findPatterns()
	m.findSecure()
	known := m.known()
	m.handshake()
	m.clientAuths()
	for _, r := range results {
		m.paths(r, r.Paths[host], false)
	}
	m.certificates()
	for _, r := range results {
		m.paths(r, r.Paths[host], true)
	}
	m.passthrough(results)
	m.unsecured(results)
	for _, r := range fallbacks {
		m.fallback(r)
	}
	m.canaries(canaries, fallbackCanaries, known)
	m.addOwnerProblems()
	if known {
		m.sort()
		m.appRoot()
		m.names()
	} else {
		m.Host = nil
	}
	// A copy: the rest of m, which is larger, is not to live for as long.
	merged := m.Merged
	return &merged
}

// mains sorts contributions by age, and takes the canaries out, which answer nothing by themselves.
func mains(all []*Contribution) (mains, canaries []*Contribution) {
	all = slices.SortedFunc(slices.Values(all), older)
	for _, r := range all {
		if r.Canary != nil {
			canaries = append(canaries, r)
		}
	}
	if canaries == nil {
		return all, nil
	}
	return slices.DeleteFunc(all, func(r *Contribution) bool { return r.Canary != nil }), canaries
}

func older(a, b *Contribution) int { return snapshot.Older(a.Object, b.Object) }

// elder names the Ingress that something comes from, which counts before r.
func (m *merging) elder(origin ir.Ref, r *Contribution) string {
	if winner := m.resultOf(origin); winner != nil {
		return snapshot.Elder(winner.Object, r.Object)
	}
	return origin.String()
}

// resultOf returns nil for an Ingress that has no part in the host.
func (m *merging) resultOf(origin ir.Ref) *Contribution {
	for _, r := range slices.Concat(m.results, m.fallbacks) {
		if r.Ref() == origin {
			return r
		}
	}
	return nil
}

func (m *merging) problem(of *Contribution, p report.Problem) {
	if m.Problems == nil {
		m.Problems = map[ir.Ref][]report.Problem{}
	}
	m.Problems[of.Ref()] = append(m.Problems[of.Ref()], p)
}

// paths adds the paths of one Ingress: those that stand for the rest of the host, or all others.
func (m *merging) paths(r *Contribution, paths []*Path, last bool) {
	for _, p := range paths {
		if p.Last == last && m.admits(r, p) {
			m.add(r, p)
		}
	}
}

func (m *merging) add(r *Contribution, p *Path) {
	match, size := p.Match, 0
	if m.regex[r.namespace()] {
		match.Type = ir.MatchRegex
		var ok bool
		if size, ok = m.readPattern(r, p); !ok {
			return
		}
	}
	key := m.key(r, p.Match)
	if winner, taken := m.taken[key]; taken {
		m.conflict(r, p, winner)
		return
	}
	if !m.takePattern(r, p, size) {
		return
	}
	filters := m.toHTTPS(p)
	if m.conflicting[r] || m.opensForStrangers(r, p) {
		filters = append(filters, ir.Forbidden)
	}
	route := &ir.Route{
		Match: ir.Match{PathMatch: match}, Filters: append(filters, p.Filters...), Backends: ir.To(p.Backend), Proxy: p.Proxy,
		ErrorPages: p.ErrorPages, Origin: r.Ref(), Unlogged: p.Unlogged, Tracing: p.Tracing,
	}
	m.taken[key] = claim{by: r, path: p, route: route}
	m.Host.Routes = append(m.Host.Routes, route)
}

// toHTTPS is the redirect of a path to HTTPS, or nil.
func (m *merging) toHTTPS(p *Path) []ir.Filter {
	if p.Redirect == nil || !m.secure && !p.RedirectAlways {
		return nil
	}
	return []ir.Filter{*p.Redirect}
}

// key is the same for paths that match the same requests: a slash at the end of a prefix changes nothing, but at the end
// of a regular expression it does.
func (m *merging) key(r *Contribution, match ir.PathMatch) ir.PathMatch {
	if match.Type == ir.MatchPrefix && !m.regex[r.namespace()] {
		match.Path = strings.TrimSuffix(match.Path, "/")
	}
	return match
}

// conflict tells an Ingress that a path of it does not answer. That paths come before a default backend is what it is for,
// so of those only one that never answers for any host, or loses against another one, is told.
func (m *merging) conflict(r *Contribution, p *Path, winner claim) {
	if p.Last && (winner.path.Backend.ID == p.Backend.ID || !winner.path.Last && p != r.Fallback) {
		return
	}
	m.problem(r, report.Problem{
		Severity: report.Warning, Reason: report.PathConflict, Field: p.Field, Message: m.explain(r, p, winner),
	})
}

func (m *merging) explain(r *Contribution, p *Path, winner claim) string {
	path, of := winner.path.Match.Path, OrEvery(m.Host.Host)
	if m.Host.Host != "" {
		of = "host " + of
	}
	who := winner.by.Ref().String()
	if snapshot.Older(winner.by.Object, r.Object) < 0 {
		who = snapshot.Elder(winner.by.Object, r.Object)
	}
	if !p.Last && path != p.Match.Path {
		path += " (as a prefix equal to " + p.Match.Path + ")"
	}
	switch {
	case winner.path.Last:
		return fmt.Sprintf("%s has another default backend for %s, which answers", who, of)
	case winner.by == r:
		return fmt.Sprintf("the Ingress has the path %s of %s twice, and the first one answers", path, of)
	}
	return fmt.Sprintf("%s has the same path %s of %s, and answers", who, path, of)
}

// fallback adds the backend of an Ingress without rules: for hosts that no rule has, and for the hosts of its own namespace. Of
// several for every host the losers are told; that a host has a path or a default backend of its own is no loss.
func (m *merging) fallback(r *Contribution) {
	if host := m.Host.Host; host != "" && !m.Owner.Is(r.namespace()) || host == "" && !m.serves(r) {
		return
	}
	if _, taken := m.taken[m.key(r, r.Fallback.Match)]; !taken || m.Host.Host == "" {
		m.addFallback(r)
	}
}
