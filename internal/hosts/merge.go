package hosts

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// maxRegex is the length of the longest regular expression that a path may be.
const maxRegex = 1 << 10

// Merged is one host, and what Merge says of the Ingresses that have it.
type Merged struct {
	Host *ir.VirtualHost
	// Certificate is nil for a host that no Ingress lists in an entry of tls. Absent says that its Secret does not exist.
	Certificate *ir.Certificate
	Absent      bool
	// Implied is for a host that is not listed, or nil. It counts where no wildcard answers for the host.
	Implied *Implied
	// Secure says that an Ingress wants the host to be asked by HTTPS.
	Secure bool
	// PassedIn is the namespace whose Ingresses hand the TLS connections of the host on; it is empty where TLS ends here.
	PassedIn string
	// Mains are the main objects whose requests a canary shares with one of its backends; it is nil without canaries.
	Mains map[CanaryBackend][]ir.Ref
	// Problems is nil where there are none.
	Problems map[ir.Ref][]report.Problem
}

// merging is one host in the hands of Merge.
type merging struct {
	Merged
	regex bool
	// results and fallbacks are what the host is merged of.
	results, fallbacks []*Contribution
	// secure is Secure of the host or of the wildcard above.
	secure bool
	taken  map[ir.PathMatch]claim
	// conflicting are the objects whose paths answer 403, because another object decides about the client certificates of the host.
	conflicting map[*Contribution]bool
}

// claim is a path that answers, the object that has it, and the route that it has become.
type claim struct {
	by    *Contribution
	path  *Path
	route *ir.Route
	// canary shares the requests; it is nil for most paths.
	canary *Contribution
}

// Merge joins what Ingresses say of a host. The oldest one wins where two say different things, and the other is told.
// The fallbacks answer for what no path of the host matches; the first of them counts. above says that the wildcard above
// the host is Secure, which counts for the host, too.
func Merge(host string, results []*Contribution, fallbacks []*Contribution, above bool) *Merged {
	results, canaries := mains(results)
	fallbacks, fallbackCanaries := mains(fallbacks)
	m := &merging{
		taken: map[ir.PathMatch]claim{}, results: results, fallbacks: fallbacks,
		regex: slices.ContainsFunc(results, func(r *Contribution) bool {
			return slices.ContainsFunc(r.Paths[host], func(p *Path) bool { return p.Regex })
		}),
	}
	m.Host = &ir.VirtualHost{Host: host, Regex: m.regex}
	m.Secure = slices.ContainsFunc(results, func(r *Contribution) bool { return r.secures(host) })
	m.secure = m.Secure || above
	known := host == "" && len(fallbacks) > 0 || slices.ContainsFunc(results, func(r *Contribution) bool { return r.Rules(host) })
	m.handshake(results)
	for _, r := range results {
		if r.Rules(host) {
			m.clientAuth(r)
		}
		m.paths(r, r.Paths[host], false)
		if c := r.Certificates[host]; known || c == nil || !c.Automated || r.answersFor(host) {
			m.certificate(r, c)
		} else {
			m.problem(r, unruled(host))
		}
		if m.Implied == nil {
			m.Implied = r.Implied[host]
		}
	}
	if m.Certificate != nil {
		m.Implied = nil
	}
	for _, r := range results {
		m.paths(r, r.Paths[host], true)
	}
	m.passthrough(results)
	m.unsecured(results)
	for _, r := range fallbacks {
		m.fallback(r, host)
	}
	m.canaries(canaries, fallbackCanaries, known)
	if known {
		m.sort()
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
		if p.Last == last {
			m.add(r, p)
		}
	}
}

func (m *merging) add(r *Contribution, p *Path) {
	match := p.Match
	if m.regex {
		match.Type = ir.MatchRegex
		if err := checkRegex(match.Path); err != nil {
			m.problem(r, report.Problem{Severity: report.Error, Reason: report.InvalidRegex, Field: p.Field, Message: err.Error()})
			return
		}
	}
	key := m.key(p.Match)
	if winner, taken := m.taken[key]; taken {
		m.conflict(r, p, winner)
		return
	}
	var filters []ir.Filter
	if p.Redirect != nil && (m.secure || p.RedirectAlways) {
		filters = append(filters, *p.Redirect)
	}
	if m.conflicting[r] {
		filters = append(filters, ir.Forbidden)
	}
	route := &ir.Route{
		Match: ir.Match{PathMatch: match}, Filters: append(filters, p.Filters...), Backends: ir.To(p.Backend), Proxy: p.Proxy, Origin: r.Ref(),
	}
	m.taken[key] = claim{by: r, path: p, route: route}
	m.Host.Routes = append(m.Host.Routes, route)
}

// key is the same for paths that match the same requests: a slash at the end of a prefix changes nothing, but at the end
// of a regular expression it does.
func (m *merging) key(match ir.PathMatch) ir.PathMatch {
	if match.Type == ir.MatchPrefix && !m.regex {
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

// fallback adds the backend of an Ingress without rules. Of several for every host the losers are told; that a host has
// a path or a default backend of its own is no loss.
func (m *merging) fallback(r *Contribution, host string) {
	if _, taken := m.taken[m.key(r.Fallback.Match)]; !taken || host == "" {
		m.addFallback(r)
	}
}

func checkRegex(path string) error {
	if len(path) > maxRegex {
		return fmt.Errorf("the regular expression is %d bytes long, and may be %d; the path is left out", len(path), maxRegex)
	}
	if _, err := regexp.Compile("(?i)^" + path); err != nil {
		return fmt.Errorf("%q is no regular expression of the kind RE2: %w; the path is left out", path, err)
	}
	return nil
}

// certificate takes the first one. An issuer that need not be asked, because there is a certificate, is no conflict.
func (m *merging) certificate(r *Contribution, c *ir.Certificate) {
	switch {
	case c == nil:
	case m.Certificate == nil:
		m.Certificate, m.Absent = c, slices.Contains(r.Absent, c.Host)
	case c.Automated:
	case m.Certificate.Secret != c.Secret || m.Certificate.SecondSecret != c.SecondSecret:
		has := "has another certificate"
		if m.Certificate.Automated {
			has = "has the certificate of an issuer"
		}
		m.problem(r, report.Problem{
			Severity: report.Warning, Reason: report.HostConflict, Field: "spec.tls",
			Message: fmt.Sprintf("%s %s for %s, which is shown", m.elder(m.Certificate.Origin, r), has, c.Host),
		})
	}
}

// unruled says that no issuer is asked for a host that no rule names. ingress-nginx needs a rule, too.
func unruled(host string) report.Problem {
	return report.Problem{
		Severity: report.Warning, Reason: report.InvalidHost, Field: "spec.tls", Message: fmt.Sprintf(
			"no issuer is asked for a certificate of %s: no rule has this host; write one, or take the host out of tls", host),
	}
}

// sort puts the routes into the order in which they are tried.
func (m *merging) sort() {
	slices.SortStableFunc(m.Host.Routes, func(a, b *ir.Route) int {
		if m.regex {
			// ingress-nginx sorts the locations of a host with regular expressions like this.
			return cmp.Or(cmp.Compare(len(b.Match.Path), len(a.Match.Path)), cmp.Compare(b.Match.Path, a.Match.Path))
		}
		return cmp.Or(
			-compareBool(a.Match.Type == ir.MatchExact, b.Match.Type == ir.MatchExact),
			cmp.Compare(prefixLength(b), prefixLength(a)),
			cmp.Compare(a.Match.Path, b.Match.Path),
		)
	})
}

func prefixLength(r *ir.Route) int { return len(strings.TrimSuffix(r.Match.Path, "/")) }

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// handshake takes the versions of the oldest Ingress of the host, and the ciphers of the oldest one that asks for some.
func (m *merging) handshake(results []*Contribution) {
	var chosen *Contribution
	for _, r := range results {
		if _, ok := r.Paths[m.Host.Host]; !ok {
			continue
		}
		if m.Host.TLS == nil {
			policy := r.TLS
			m.Host.TLS, m.Host.TLSOrigin = &policy, r.Ref().String()
		}
		switch {
		case !r.AsksCiphers:
		case chosen == nil:
			chosen = r
			m.Host.TLS = &ir.TLSPolicy{Version: m.Host.TLS.Version, Ciphers: r.TLS.Ciphers}
			m.Host.TLSOrigin = r.Ref().String()
		case !slices.Equal(chosen.TLS.Ciphers, r.TLS.Ciphers):
			m.problem(r, report.Problem{
				Severity: report.Warning, Reason: report.HostConflict, Field: report.AnnotationField(report.Ciphers),
				Message: fmt.Sprintf("%s has other ssl-ciphers for %s, which count", snapshot.Elder(chosen.Object, r.Object), OrEvery(m.Host.Host)),
			})
		}
	}
}
