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

// Merged is the result of Merge for one host, including the problems of the objects that configure the host.
type Merged struct {
	Host *ir.VirtualHost
	// Owner is the namespace that owns the host. Only its objects can configure settings for the host as a whole.
	Owner ownership.Owner
	// Certificate is the certificate of the host. It is nil if no Ingress lists the host in spec.tls. Absent is true if
	// the Secret of the certificate does not exist.
	Certificate *ir.Certificate
	Absent      bool
	// Others is set only for wildcards. It maps namespaces that do not own the wildcard to their certificates for it.
	// Each certificate is used only for hosts of its namespace below the wildcard.
	Others map[string]*ir.Certificate
	// Implied is the certificate from an issuer for a host that is not listed in spec.tls, or nil. It is used if no
	// wildcard certificate covers the host.
	Implied *Implied
	// Secure is true if an object in the namespace that owns the host configures HTTPS for the host.
	Secure bool
	// PassedIn is the namespace whose Ingress forwards the TLS connections of the host to a backend. It is empty if the
	// controller terminates TLS.
	PassedIn string
	// Names lists the aliases of the host. Only objects in the namespace that owns the host can request aliases. Names
	// is nil for most hosts.
	Names []Name
	// Mains maps each backend of a canary to the main objects of the canary. The backend gets a share of their
	// requests. Mains is nil if the host has no canaries.
	Mains map[CanaryBackend][]ir.Ref
	// PatternSizes are the sizes of the paths that are regular expressions, including rejected paths. It is nil if no
	// path is a regular expression.
	PatternSizes []PatternSize
	// MaxHead is the size of request headers that the host needs because of a snippet, in bytes, or 0.
	MaxHead int
	// Problems maps objects to their problems with this host. It is nil if there are no problems.
	Problems map[ir.Ref][]report.Problem
}

// Empty reports whether the host needs no configuration, and no object has a problem with it. Owner may be set: a host
// has the owner of the wildcard that covers it.
func (m *Merged) Empty() bool {
	return m.Host == nil && m.Certificate == nil && m.Implied == nil && m.Problems == nil && m.PatternSizes == nil
}

// mergeState is the state of one call to Merge.
type mergeState struct {
	Merged
	around *HostContext
	// regex is the set of namespaces whose paths on this host are matched as regular expressions. It is nil if there
	// are no such namespaces.
	regex map[string]bool
	// results are the objects with rules for the host. fallbacks are the objects without rules, which only have a
	// default backend. Both lists are sorted by age, the oldest first, and do not include canaries.
	results, fallbacks []*Contribution
	// secure is true if the host should be served over HTTPS, because Secure is true for the host, or for a wildcard
	// with the same owner that covers the host.
	secure bool
	taken  map[ir.PathMatch]claim
	// conflicting is the set of objects whose paths return 403, because the client certificate settings of the host
	// differ from their own settings.
	conflicting map[*Contribution]bool
	patterns    patterns
	// server is the object whose snippets apply to the paths of the host in the namespace that owns it. It is nil if
	// there is no such object.
	server *Contribution
}

// claim describes a served path of the host: the object that defines the path, and the route for the path.
type claim struct {
	by    *Contribution
	path  *Path
	route *ir.Route
	// canary is the canary that gets a share of the requests for the path. It is nil for most paths.
	canary *Contribution
}

// Merge combines the settings that several objects configure for one host. If two objects define the same path, the
// older object wins. One namespace owns the host: settings for the host as a whole come from the oldest object in this
// namespace that configures them. The other objects get a warning. Requests that match no path go to the first default
// backend in this namespace. The host "" stands for every host without a rule; for it, default backends of all
// namespaces are used. around contains the ownership policy, and information about related hosts.
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
	m.findServer()
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
	m.onDemand()
	m.unsecured(results)
	for _, r := range fallbacks {
		m.fallback(r)
	}
	m.canaries(canaries, fallbackCanaries, known)
	m.addOwnerProblems()
	if known {
		m.redirectOthers()
		m.sort()
		m.appRoot()
		m.locations()
		m.namedLocations()
		if m.server != nil {
			m.MaxHead = m.server.Server.MaxHead
		}
		m.names()
	} else {
		m.Host = nil
	}
	// Return a copy, so that the garbage collector can free the larger mergeState.
	merged := m.Merged
	return &merged
}

// mains separates the canaries from the other objects, the main objects. A canary only gets a share of the requests of
// a main object. Both lists are sorted by age, the oldest first.
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

// elder returns the name of the Ingress to which origin refers, for a message to the author of r. If the Ingress takes
// precedence because it is older than r, the name starts with "the older".
func (m *mergeState) elder(origin ir.Ref, r *Contribution) string {
	if winner := m.resultOf(origin); winner != nil {
		return snapshot.Elder(winner.Object, r.Object)
	}
	return origin.String()
}

// contributions passes each object with rules or a default backend for the host to yield, in the order of the lists. It
// is an iterator, because a new list would cost an allocation for each host.
func (m *mergeState) contributions(yield func(*Contribution) bool) {
	for _, list := range [...][]*Contribution{m.results, m.fallbacks} {
		for _, r := range list {
			if !yield(r) {
				return
			}
		}
	}
}

// resultOf returns the settings of the object origin, or nil if this object does not configure the host.
func (m *mergeState) resultOf(origin ir.Ref) *Contribution {
	for r := range m.contributions {
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

// paths adds the paths of one object to the host. If last is true, it adds only default backends. If last is false, it
// adds all paths except default backends.
func (m *mergeState) paths(r *Contribution, paths []*Path, last bool) {
	for _, p := range paths {
		if p.Last == last && m.admits(r, p) {
			m.add(r, p)
		}
	}
}

func (m *mergeState) add(r *Contribution, p *Path) {
	match, size, whole := p.Match, 0, m.withServer(r, p)
	if m.regex[r.namespace()] {
		match.Type = ir.MatchRegex
		var ok bool
		if size, ok = m.readPattern(r, whole); !ok {
			return
		}
	}
	key := m.key(r, p.Match)
	if winner, taken := m.taken[key]; taken {
		m.conflict(r, p, winner)
		return
	}
	if !m.takePattern(r, whole, size) {
		return
	}
	filters := m.toHTTPS(whole)
	if m.conflicting[r] || m.opensForStrangers(r, p) {
		filters = append(filters, ir.Forbidden)
	}
	route := &ir.Route{
		Match: ir.Match{PathMatch: match}, Filters: append(filters, whole.Filters...), Backends: ir.To(p.Backend),
		Proxy: whole.Proxy, ErrorPages: whole.ErrorPages, Origin: r.Ref(), RoutePolicy: p.RoutePolicy,
	}
	m.taken[key] = claim{by: r, path: p, route: route}
	m.Host.Routes = append(m.Host.Routes, route)
}

// toHTTPS returns the filter that redirects requests for a path to HTTPS, or nil if requests are not redirected.
func (m *mergeState) toHTTPS(p *Path) []ir.Filter {
	if p.Redirect == nil || !m.secure && !p.RedirectAlways {
		return nil
	}
	return []ir.Filter{*p.Redirect}
}

// redirectOthers sets the redirect to HTTPS for requests that no path of the host matches. The oldest object in the
// namespace that owns the host decides. As in ingress-nginx, there is no such redirect for the host "". A host with the
// path "/" needs no such redirect, because every request matches a path.
func (m *mergeState) redirectOthers() {
	if m.Host.Host == "" {
		return
	}
	for r := range m.ofOwner(true) {
		_, taken := m.taken[m.key(r, ir.PathMatch{Type: ir.MatchPrefix, Path: "/"})]
		if !taken && (m.secure || r.RedirectAlways) {
			m.Host.HTTPSRedirect = r.Redirect
		}
		return
	}
}

// key returns the key for a path in m.taken, the map of served paths. Paths that match the same requests have the same
// key, so the trailing slash of a prefix is removed. The trailing slash of a regular expression is kept, because it
// changes which requests match.
func (m *mergeState) key(r *Contribution, match ir.PathMatch) ir.PathMatch {
	if match.Type == ir.MatchPrefix && !m.regex[r.namespace()] {
		match.Path = strings.TrimSuffix(match.Path, "/")
	}
	return match
}

// conflict adds a warning to r that its path p is not served, because the path winner takes precedence. If p is a
// default backend, there is usually no warning, because it is normal that other paths take precedence over it. There is
// a warning only if winner is another default backend, or if r has no rules and therefore serves no requests at all.
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
	who := winner.by.Ref().String()
	if snapshot.Older(winner.by.Object, r.Object) < 0 {
		who = snapshot.Elder(winner.by.Object, r.Object)
	}
	if !p.Last && path != p.Match.Path {
		path += " (as a prefix equal to " + p.Match.Path + ")"
	}
	switch {
	case winner.path.Last:
		return fmt.Sprintf("%s has another default backend for %s, which is used instead", who, of)
	case winner.by == r:
		return fmt.Sprintf("the Ingress defines the path %s of %s twice, and the first definition is used", path, of)
	}
	return fmt.Sprintf("%s defines the same path %s of %s, and gets the requests", who, path, of)
}

// fallback adds the default backend of an object without rules to the host, if the host is "" or belongs to the
// object's namespace. On the host "", a conflict with another default backend is reported. On other hosts, other paths
// and default backends take precedence without a warning.
func (m *mergeState) fallback(r *Contribution) {
	if host := m.Host.Host; host != "" && !m.Owner.Is(r.namespace()) || host == "" && !m.serves(r) {
		return
	}
	if _, taken := m.taken[m.key(r, r.Fallback.Match)]; !taken || m.Host.Host == "" {
		m.addFallback(r)
	}
}
