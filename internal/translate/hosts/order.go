package hosts

import (
	"cmp"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// sort sorts the routes of the host into the order in which they are matched.
func (m *mergeState) sort() {
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
	// Start with the namespace that owns the host. The other namespaces follow in the order in which their first routes
	// occur.
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

// byLiteral sorts routes by the length of their literal prefix, the longest first, as required by the function among.
// If two routes match the same path, an exact path or the longer prefix still comes first.
func byLiteral(a, b *ir.Route) int {
	return cmp.Compare(literal(b.Match.PathMatch), literal(a.Match.PathMatch))
}

// byPath sorts exact paths before prefixes, and longer prefixes before shorter ones.
func byPath(a, b *ir.Route) int {
	return cmp.Or(
		-compareBool(a.Match.Type == ir.MatchExact, b.Match.Type == ir.MatchExact),
		cmp.Compare(prefixLength(b), prefixLength(a)),
		cmp.Compare(a.Match.Path, b.Match.Path),
	)
}

// byText sorts regular expressions in the order in which ingress-nginx sorts the locations of a host: longer
// expressions first, and expressions of the same length in descending alphabetical order.
func (m *mergeState) byText(a, b *ir.Route) int {
	return cmp.Or(cmp.Compare(m.patterns.length(b), m.patterns.length(a)), cmp.Compare(b.Match.Path, a.Match.Path))
}

// The function among inserts the routes of one more namespace (more) into the sorted routes of other namespaces (all),
// and returns the result. Both lists keep their order. A route is inserted after all routes whose literal prefix is at
// least as long. Therefore, a regular expression takes precedence over a path of another namespace only if its literal
// prefix is longer than the path.
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

// The function literal returns the length of the prefix with which all matching paths start. For a regular expression,
// this is its literal prefix, which may be empty. For other paths, the result is at least 1.
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
