package live

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// locations are the locations of a host, which come from snippets.
type locations struct {
	// namespace is the namespace of the objects that define the locations.
	namespace string
	exact     map[string]*Route
	// prefixes are sorted by length, the longest first. regexes are in the order of the live configuration.
	prefixes, regexes []*Route
	// named are the locations that filters name. No path leads to them.
	named map[string]*Route
	// inner are the regular expressions that stand in a location, in their order. outer is the location in which a
	// prefix stands.
	inner map[*Route][]*Route
	outer map[*Route]*Route
}

func newLocations(namespace string) *locations {
	return &locations{namespace: namespace, exact: map[string]*Route{}, named: map[string]*Route{},
		inner: map[*Route][]*Route{}, outer: map[*Route]*Route{}}
}

// add adds a location. It returns an error if the path is invalid, if there is another location for the same path, or
// if the location in which it stands is missing.
func (l *locations) add(r *Route) error {
	outer, err := l.enclosing(r.within)
	if err != nil {
		return err
	}
	switch ir.MatchType(r.Type) {
	case ir.LocationRegex, ir.LocationRegexFold:
		return l.addRegex(r, outer)
	case ir.LocationExact:
		return addTo(l.exact, r)
	case ir.LocationNamed:
		return addTo(l.named, r)
	default:
		return l.addPrefix(r, outer)
	}
}

// addTo adds a location to a map of locations by their paths.
func addTo(all map[string]*Route, r *Route) error {
	if all[r.Path] != nil {
		return fmt.Errorf("there are two locations %s", r.Path)
	}
	all[r.Path] = r
	return nil
}

func (l *locations) addPrefix(r, outer *Route) error {
	longest := func(a, b *Route) int {
		return cmp.Or(cmp.Compare(len(b.Path), len(a.Path)), strings.Compare(a.Path, b.Path))
	}
	i, found := slices.BinarySearchFunc(l.prefixes, r, longest)
	if found {
		return fmt.Errorf("there are two locations %s", r.Path)
	}
	l.prefixes = slices.Insert(l.prefixes, i, r)
	if outer != nil {
		l.outer[r] = outer
	}
	return nil
}

func (l *locations) addRegex(r, outer *Route) (err error) {
	compile := pattern.Compile
	if ir.MatchType(r.Type) == ir.LocationRegexFold {
		compile = pattern.CompileFold
	}
	if r.Regex, err = compile(r.Path); err != nil {
		return err
	}
	if outer != nil {
		l.inner[outer] = append(l.inner[outer], r)
	} else {
		l.regexes = append(l.regexes, r)
	}
	return nil
}

// enclosing returns the last location, a prefix or a regular expression, with this path. It returns nil if of is nil,
// and an error if there is no such location.
func (l *locations) enclosing(of *ir.PathMatch) (found *Route, err error) {
	if of == nil {
		return nil, nil
	}
	consider := func(all []*Route) {
		for _, r := range all {
			if r.Type == string(of.Type) && r.Path == of.Path && (found == nil || r.position > found.position) {
				found = r
			}
		}
	}
	consider(l.prefixes)
	consider(l.regexes)
	for _, all := range l.inner {
		consider(all)
	}
	if found == nil {
		return nil, fmt.Errorf("the location %s, in which this location stands, is missing", of.Path)
	}
	return found, nil
}

// findNamed returns the location with a name. from is the namespace of the route that names the location. As in nginx,
// the request fails if there is no such location. l may be nil.
func (l *locations) findNamed(name, from string) (*Route, error) {
	if l != nil {
		if r := l.named[name]; r != nil && (r.everywhere || from == l.namespace) {
			return r, nil
		}
	}
	return nil, exchange.Fail(http.StatusInternalServerError, fmt.Errorf("the host has no location %s", name))
}

// find returns the location for a path, or route if no location takes the request from it. route is the route that
// serves the path without locations, or nil. The order is nginx's order, with two differences: if a location and a
// route have the same path, the location wins, because it may restrict access, and locations only apply to routes of
// their own namespace, unless they apply everywhere. find returns an error if matching takes too long.
func (l *locations) find(path string, route *Route, budget *pattern.Budget) (*Route, error) {
	own := route == nil || ir.ParseRef(route.Origin).Namespace == l.namespace
	if exact := l.exact[path]; exact != nil && (own || exact.everywhere) {
		return exact, nil
	}
	if route != nil && ir.MatchType(route.Type) == ir.MatchExact {
		return route, nil
	}
	prefix := l.longest(path, route, own)
	if found, err := l.around(prefix, path, budget); found != nil || err != nil {
		return found, err
	}
	isRegex := route != nil && route.Regex != nil
	found, err := l.search(path, route, own, budget)
	switch {
	case found != nil && err == nil:
		return l.inside(found, path, budget)
	case err != nil:
		return nil, err
	case prefix == nil || isRegex:
		return route, nil
	}
	return prefix, nil
}

// around returns the location that serves a path with the longest prefix prefix, which may be nil, before the regular
// expressions of the host are searched: a regular expression inside of the prefix or of a location around it, or the
// prefix, if nginx's modifier ^~ excludes the regular expressions of the host. Otherwise it returns nil.
func (l *locations) around(prefix *Route, path string, budget *pattern.Budget) (*Route, error) {
	// A location ^~ only precedes the regular expressions beside it, and not the ones beside its outer location.
	only := false
	for at := prefix; at != nil; at = l.outer[at] {
		if !only {
			if inner, err := l.inside(at, path, budget); inner != at || err != nil {
				return inner, err
			}
		}
		only = ir.MatchType(at.Type) == ir.LocationPrefixOnly
	}
	if only {
		return prefix, nil
	}
	return nil, nil
}

// inside returns the location that serves a path for which outer was found: the first regular expression inside of
// outer that matches, or outer.
func (l *locations) inside(outer *Route, path string, budget *pattern.Budget) (*Route, error) {
	for _, r := range l.inner[outer] {
		switch r.Regex.Search(path, budget) {
		case pattern.Unknown:
			return nil, errTooLong
		case pattern.Yes:
			return l.inside(r, path, budget)
		case pattern.No:
		}
	}
	return outer, nil
}

// search returns the first location whose regular expression matches path, or nil. If route is a regular expression,
// too, only the locations before it count. own is true if all locations apply to route.
func (l *locations) search(path string, route *Route, own bool, budget *pattern.Budget) (*Route, error) {
	isRegex := route != nil && route.Regex != nil
	for _, r := range l.regexes {
		if isRegex && r.position > route.position {
			break
		}
		if !own && !r.everywhere {
			continue
		}
		switch r.Regex.Search(path, budget) {
		case pattern.Unknown:
			return nil, errTooLong
		case pattern.Yes:
			return r, nil
		case pattern.No:
		}
	}
	return nil, nil
}

// longest returns the location with the longest prefix of path. It returns nil if no location matches, or if route is
// for a longer prefix. own is true if all locations apply to route.
func (l *locations) longest(path string, route *Route, own bool) *Route {
	least := 0
	if route != nil && route.Regex == nil {
		least = len(strings.TrimSuffix(route.Path, "/"))
	}
	for _, r := range l.prefixes {
		switch {
		case len(r.Path) < least:
			return nil
		case strings.HasPrefix(path, r.Path) && (own || r.everywhere):
			return r
		}
	}
	return nil
}
