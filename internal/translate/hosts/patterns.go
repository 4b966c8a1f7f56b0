package hosts

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
	"github.com/k8singress/k8singress/internal/model/report"
)

// patterns holds the total sizes of the regular expressions in the paths of a host.
type patterns struct {
	// size is the total size of the regular expressions of the namespace that owns the host. others is the total size
	// for all other namespaces together.
	size, others int
	// standIns contains the routes that return 503 for requests that a rejected path could match. It maps each route to
	// the length of the rejected path, which determines the position of the route.
	standIns map[*ir.Route]int
}

// PatternSize is the size of regular expressions of an Ingress, counted in instructions of the compiled expressions. If
// a list contains several PatternSizes of one Ingress, they must be added.
type PatternSize struct {
	Ingress ir.Ref
	Size    int
}

func (m *mergeState) countPattern(of ir.Ref, size int) {
	if last := len(m.PatternSizes) - 1; last >= 0 && m.PatternSizes[last].Ingress == of {
		m.PatternSizes[last].Size += size
		return
	}
	m.PatternSizes = append(m.PatternSizes, PatternSize{of, size})
}

// readPattern checks the path p, which is a regular expression, and returns the size of the compiled expression. It
// returns false if the path is invalid, or if the regular expressions of the object are rejected.
func (m *mergeState) readPattern(r *Contribution, p *Path) (int, bool) {
	size, err := pattern.PathSize(p.Match.Path)
	if err != nil {
		m.refusePattern(r, p, report.InvalidRegex, err)
		return 0, false
	}
	m.countPattern(r.Ref(), size)
	if r.PatternsRefused {
		m.withoutPattern(r, p)
	}
	return size, !r.PatternsRefused
}

// takePattern adds the size of the path p to the total size for the host. It returns false if the total size would
// exceed the limit. takePattern must be called for paths of older objects first. The limit for the namespace that owns
// the host does not include paths of other namespaces.
func (m *mergeState) takePattern(r *Contribution, p *Path, size int) bool {
	sum, of := m.patterns.size+size, &m.patterns.size
	if !m.Owner.Is(r.namespace()) {
		sum, of = sum+m.patterns.others, &m.patterns.others
	}
	if sum > pattern.MaxHostSize {
		m.refusePattern(r, p, report.QuotaExceeded,
			fmt.Errorf(
				"the compiled regular expressions of %s would have %d instructions with this one, and the maximum "+
					"is %d; older Ingresses come first: write fewer or shorter expressions",
				OrEvery(m.Host.Host),
				sum, pattern.MaxHostSize))
		return false
	}
	*of += size
	return true
}

func (m *mergeState) refusePattern(r *Contribution, p *Path, reason report.Reason, why error) {
	m.problem(r, report.Problem{
		Severity: report.Error, Reason: reason, Field: p.Field,
		Message: fmt.Sprintf("%v; %s", why, m.withoutPattern(r, p)),
	})
}

// withoutPattern replaces a rejected path, and returns a description of the effect for a message. If the path may
// restrict access, requests that start with its literal prefix get 503, because another path could otherwise serve them
// without the restriction. If not, the path is ignored.
func (m *mergeState) withoutPattern(r *Contribution, p *Path) (outcome string) {
	if !m.conflicting[r] && ir.Strictest(p.Filters) == ir.NoRequests {
		return "the path is ignored"
	}
	prefix := pattern.Prefix(p.Match.Path)
	route := &ir.Route{
		Match:   ir.Match{PathMatch: ir.PathMatch{Type: ir.MatchRegex, Path: regexp.QuoteMeta(prefix)}},
		Filters: []ir.Filter{ir.Unavailable}, Backends: ir.To(p.Backend), Origin: r.Ref(),
		RoutePolicy: p.RoutePolicy,
	}
	if m.patterns.standIns == nil {
		m.patterns.standIns = map[*ir.Route]int{}
	}
	m.patterns.standIns[route] = len(p.Match.Path)
	m.Host.Routes = append(m.Host.Routes, route)
	return fmt.Sprintf("all paths that start with %s get 503, because the path may restrict access", prefix)
}

// length returns the length of a regular expression, for sorting. For a route that replaces a rejected path, it returns
// the length of that path.
func (p *patterns) length(r *ir.Route) int {
	if length, ok := p.standIns[r]; ok {
		return length
	}
	return len(r.Match.Path)
}

// WithoutPatterns returns a copy of c in which all regular expressions are rejected, because their total size in the
// namespace exceeds the limit. A rejected path returns 503 if it may restrict access, and is ignored otherwise. If
// other settings than paths contain regular expressions, all paths return 503.
func (c *Contribution) WithoutPatterns() *Contribution {
	rest := *c
	rest.PatternsRefused = true
	if c.PatternSize == 0 {
		return &rest
	}
	rest.Closed, rest.Aliases = true, c.WithoutExpressions().Aliases
	rest.Paths = maps.Clone(c.Paths)
	for host, paths := range c.Paths {
		rest.Paths[host] = nil
		for _, p := range paths {
			rest.Paths[host] = append(rest.Paths[host], p.Closed())
		}
	}
	if c.Fallback != nil {
		rest.Fallback = c.Fallback.Closed()
	}
	if c.Root != nil {
		rest.Root = c.Root.Closed()
	}
	rest.Server = c.Server.closed()
	if c.ClientAuth != nil {
		closed := *c.ClientAuth
		closed.Closed = true
		rest.ClientAuth = &closed
	}
	if c.Canary != nil {
		rest.Canary = &ir.Canary{Closed: true}
	}
	return &rest
}

// WithoutExpressions returns a copy of c without the aliases that are regular expressions.
func (c *Contribution) WithoutExpressions() *Contribution {
	rest := *c
	rest.Aliases = slices.DeleteFunc(slices.Clone(c.Aliases), func(name string) bool { return name[0] == '~' })
	return &rest
}
