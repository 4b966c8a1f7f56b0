package hosts

import (
	"cmp"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// sort puts the routes into the order in which they are tried.
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
	// The owner of the host comes first, then the other namespaces in the order of their first routes.
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

// byLiteral sorts routes by the number of their literal characters, so that among can merge them with regular
// expressions of other namespaces. If two routes match the same path, the exact or longer one still comes first.
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

// byText sorts regular expressions as ingress-nginx sorts the locations of a host: by length, then by text, both
// descending.
func (m *mergeState) byText(a, b *ir.Route) int {
	return cmp.Or(cmp.Compare(m.patterns.length(b), m.patterns.length(a)), cmp.Compare(b.Match.Path, a.Match.Path))
}

// among merges the routes of one namespace into the routes of the namespaces before it. Both keep their order. Each
// route is placed after all routes that have at least as many literal characters. So a regular expression, however
// long, takes requests from a path of another namespace only if it has more literal characters than that path.
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

// literal returns the number of leading characters that each matching path must have literally.
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
