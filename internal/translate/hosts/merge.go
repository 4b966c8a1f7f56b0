package hosts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/ownership"
)

// Merged is one merged host, with the problems that Merge found in its objects.
type Merged struct {
	Host *ir.VirtualHost
	// Owner is the namespace that owns the host. It alone decides about settings for the host as a whole.
	Owner ownership.Owner
	// Certificate is nil if no Ingress lists the host in spec.tls. Absent means that its Secret does not exist.
	Certificate *ir.Certificate
	Absent      bool
	// Others holds, by namespace, the certificates that other namespaces list for a wildcard. Each is used only for the
	// hosts of its namespace.
	Others map[string]*ir.Certificate
	// Implied is the certificate of a host that is not listed for TLS, or nil. It is used if no wildcard certificate
	// covers the host.
	Implied *Implied
	// Secure means that the owner wants clients to use HTTPS for the host.
	Secure bool
	// PassedIn is the namespace whose Ingresses pass the TLS connections of the host through to a backend. It is empty
	// if TLS is terminated here.
	PassedIn string
	// Names are additional names that the owner requests for the host. It is usually nil.
	Names []Name
	// Mains lists, for each canary backend, the main objects whose requests it shares. It is nil without canaries.
	Mains map[CanaryBackend][]ir.Ref
	// PatternSizes are the sizes of the paths that are regular expressions, including rejected paths. It is nil without
	// such paths.
	PatternSizes []PatternSize
	// Problems is nil if there are no problems.
	Problems map[ir.Ref][]report.Problem
}

// mergeState is the state of one call of Merge.
type mergeState struct {
	Merged
	around *HostContext
	// regex is the set of namespaces whose paths are regular expressions on this host. It is nil if it is empty.
	regex map[string]bool
	// results and fallbacks are the contributions to merge, without canaries, the oldest first.
	results, fallbacks []*Contribution
	// secure is true if Secure is set for the host or for the wildcard above it.
	secure bool
	taken  map[ir.PathMatch]claim
	// conflicting is the set of objects whose paths return 403, because another object decides about the client
	// certificates of the host.
	conflicting map[*Contribution]bool
	patterns    patterns
}

// claim is a path that is served, with its object and its route.
type claim struct {
	by    *Contribution
	path  *Path
	route *ir.Route
	// canary shares the requests of the path. It is nil for most paths.
	canary *Contribution
}

// Merge combines the contributions of several Ingresses to a host. If two Ingresses define the same path, the oldest
// one wins. For settings of the host as a whole, the oldest Ingress of the owner wins. The other Ingresses get a
// warning. Requests that no path of the host matches are served by the first of the owner's fallbacks. For the host "",
// which stands for every host, the fallbacks of all namespaces are considered.
func Merge(host string, results []*Contribution, fallbacks []*Contribution, around *HostContext) *Merged {
	return around.merge(host, results, fallbacks, around.owner(host, results, fallbacks))
}

func (s *HostContext) merge(host string, results, fallbacks []*Contribution, owner ownership.Owner) *Merged {
	results, canaries := mains(results)
	fallbacks, fallbackCanaries := mains(fallbacks)
	m := &mergeState{taken: map[ir.PathMatch]claim{}, around: s, results: results, fallbacks: fallbacks}
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
	// A copy lets the garbage collector free the rest of m, which is larger.
	merged := m.Merged
	return &merged
}

// mains sorts contributions by age and separates the canaries, which serve no requests on their own.
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

// elder returns the name of the Ingress origin for a message to r. The name starts with "the older" if age decided
// between the two.
func (m *mergeState) elder(origin ir.Ref, r *Contribution) string {
	if winner := m.resultOf(origin); winner != nil {
		return snapshot.Elder(winner.Object, r.Object)
	}
	return origin.String()
}

// resultOf returns the contribution of an Ingress, or nil if it does not contribute to the host.
func (m *mergeState) resultOf(origin ir.Ref) *Contribution {
	for _, r := range slices.Concat(m.results, m.fallbacks) {
		if r.Ref() == origin {
			return r
		}
	}
	return nil
}

func (m *mergeState) problem(of *Contribution, p report.Problem) {
	if m.Problems == nil {
		m.Problems = map[ir.Ref][]report.Problem{}
	}
	m.Problems[of.Ref()] = append(m.Problems[of.Ref()], p)
}

// paths adds the paths of one Ingress. If last is true it adds only default backends, otherwise only other paths.
func (m *mergeState) paths(r *Contribution, paths []*Path, last bool) {
	for _, p := range paths {
		if p.Last == last && m.admits(r, p) {
			m.add(r, p)
		}
	}
}

func (m *mergeState) add(r *Contribution, p *Path) {
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
		Match: ir.Match{PathMatch: match}, Filters: append(filters, p.Filters...), Backends: ir.To(p.Backend),
		Proxy:      p.Proxy,
		ErrorPages: p.ErrorPages, Origin: r.Ref(), Unlogged: p.Unlogged, Tracing: p.Tracing,
	}
	m.taken[key] = claim{by: r, path: p, route: route}
	m.Host.Routes = append(m.Host.Routes, route)
}

// toHTTPS returns the filter that redirects requests for a path to HTTPS, or nil.
func (m *mergeState) toHTTPS(p *Path) []ir.Filter {
	if p.Redirect == nil || !m.secure && !p.RedirectAlways {
		return nil
	}
	return []ir.Filter{*p.Redirect}
}

// key returns the key of a path in m.taken. Paths that match the same requests have the same key: a trailing slash
// changes the meaning of a regular expression, but not of a prefix.
func (m *mergeState) key(r *Contribution, match ir.PathMatch) ir.PathMatch {
	if match.Type == ir.MatchPrefix && !m.regex[r.namespace()] {
		match.Path = strings.TrimSuffix(match.Path, "/")
	}
	return match
}

// conflict warns an Ingress that one of its paths is not served. Other paths are expected to take precedence over a
// default backend. So a default backend gets a warning only if it loses to another default backend, or if it can serve
// no host at all.
func (m *mergeState) conflict(r *Contribution, p *Path, winner claim) {
	if p.Last && (winner.path.Backend.ID == p.Backend.ID || !winner.path.Last && p != r.Fallback) {
		return
	}
	m.problem(r, report.Problem{
		Severity: report.Warning, Reason: report.PathConflict, Field: p.Field, Message: m.explain(r, p, winner),
	})
}

func (m *mergeState) explain(r *Contribution, p *Path, winner claim) string {
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
		return fmt.Sprintf("%s has another default backend for %s, which is used", who, of)
	case winner.by == r:
		return fmt.Sprintf("the Ingress defines the path %s of %s twice, and the first definition is used", path, of)
	}
	return fmt.Sprintf("%s defines the same path %s of %s, and gets the requests", who, path, of)
}

// fallback adds the default backend of an Ingress without rules, to the host "" and to the hosts of its own namespace.
// An Ingress that loses on the host "" gets a warning. A named host with its own path or default backend causes no
// warning.
func (m *mergeState) fallback(r *Contribution) {
	if host := m.Host.Host; host != "" && !m.Owner.Is(r.namespace()) || host == "" && !m.serves(r) {
		return
	}
	if _, taken := m.taken[m.key(r, r.Fallback.Match)]; !taken || m.Host.Host == "" {
		m.addFallback(r)
	}
}
