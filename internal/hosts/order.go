package hosts

import (
	"cmp"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/pattern"
)

// sort puts the routes into the order in which they are tried.
func (m *merging) sort() {
	if m.regex == nil {
		slices.SortStableFunc(m.Host.Routes, byPath)
		return
	}
	var namespaces []string
	own := map[string][]*ir.Route{}
	for _, r := range m.Host.Routes {
		namespace := r.Origin.Namespace
		if own[namespace] == nil {
			namespaces = append(namespaces, namespace)
		}
		own[namespace] = append(own[namespace], r)
	}
	// The owner of the host first, then the namespaces in the order in which they came.
	slices.SortStableFunc(namespaces, func(a, b string) int { return compareBool(m.Owner.Is(b), m.Owner.Is(a)) })
	var all []*ir.Route
	for _, namespace := range namespaces {
		if m.regex[namespace] {
			slices.SortStableFunc(own[namespace], m.byText)
		} else {
			slices.SortStableFunc(own[namespace], byPath)
			slices.SortStableFunc(own[namespace], byLiteral)
		}
		all = among(all, own[namespace])
	}
	m.Host.Routes = all
}

// byLiteral is for paths among regular expressions of others. Of two paths, the exact one or the longer one comes first anyway.
func byLiteral(a, b *ir.Route) int {
	return cmp.Compare(literal(b.Match.PathMatch), literal(a.Match.PathMatch))
}

// byPath lets exact paths come first, then the longer prefixes.
func byPath(a, b *ir.Route) int {
	return cmp.Or(
		-compareBool(a.Match.Type == ir.MatchExact, b.Match.Type == ir.MatchExact),
		cmp.Compare(prefixLength(b), prefixLength(a)),
		cmp.Compare(a.Match.Path, b.Match.Path),
	)
}

// byText is how ingress-nginx sorts the locations of a host with regular expressions.
func (m *merging) byText(a, b *ir.Route) int {
	return cmp.Or(cmp.Compare(m.patterns.length(b), m.patterns.length(a)), cmp.Compare(b.Match.Path, a.Match.Path))
}

// among puts the routes of one namespace, in their order, among those of namespaces that come before it: each behind all that say at
// least as much of a path. So no regular expression, however long, takes a request from a path that another namespace has, unless
// it says more of the path than that.
func among(all, more []*ir.Route) []*ir.Route {
	says := make([]int, len(all))
	for i, r := range all {
		says[i] = literal(r.Match.PathMatch)
	}
	joined, next := make([]*ir.Route, 0, len(all)+len(more)), 0
	for _, r := range more {
		least := literal(r.Match.PathMatch)
		for i := len(all) - 1; i >= next; i-- {
			if says[i] >= least {
				joined, next = append(joined, all[next:i+1]...), i+1
			}
		}
		joined = append(joined, r)
	}
	return append(joined, all[next:]...)
}

// literal is how many characters a path says of those that it matches, from the start.
func literal(match ir.PathMatch) int {
	if match.Type != ir.MatchRegex {
		return max(prefixLength(&ir.Route{Match: ir.Match{PathMatch: match}}), 1)
	}
	return len(pattern.Prefix(match.Path))
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
