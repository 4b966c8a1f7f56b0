package live

import (
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// prefixes is a tree of the prefix routes of a host, with one level for each path element. A lookup visits each element
// of the request path at most once.
type prefixes struct {
	// routes is the first route for this prefix, linked to other routes for the same prefix. It is nil if there are
	// only routes for longer prefixes.
	routes *Route
	above  *prefixes
	// The children of the node. A single child is stored in the field only, and its path element in the field name.
	// Several children are stored in the field below, by their path elements.
	name  string
	only  *prefixes
	below map[string]*prefixes
}

// p.at(path) returns the node of the tree for a path, and creates it if it does not exist. p must be the root.
func (p *prefixes) at(path string) *prefixes {
	for element, rest := "", strings.TrimSuffix(path, "/"); rest != ""; {
		element, rest = cut(rest)
		next := p.next(element)
		if next == nil {
			next = &prefixes{above: p}
			p.put(element, next)
		}
		p = next
	}
	return p
}

// cut splits a path, which begins with a slash, into its first element and the rest.
func cut(path string) (element, rest string) {
	path = path[1:]
	if end := strings.IndexByte(path, '/'); end >= 0 {
		return path[:end], path[end:]
	}
	return path, ""
}

func (p *prefixes) next(element string) *prefixes {
	if p.below != nil {
		return p.below[element]
	}
	if p.only != nil && p.name == element {
		return p.only
	}
	return nil
}

func (p *prefixes) put(element string, next *prefixes) {
	switch {
	case p.below != nil:
		p.below[element] = next
	case p.only != nil:
		p.below = map[string]*prefixes{p.name: p.only, element: next}
		p.name, p.only = "", nil
	default:
		p.name, p.only = element, next
	}
}

// longest returns the route with the longest prefix that matches path, or nil. It skips routes whose conditions the
// request does not meet. path must be the result of message.CleanPath.
func (p *prefixes) longest(path string, r *message.Request, b *pattern.Budget) *Route {
	for element, rest := "", strings.TrimSuffix(path, "/"); rest != ""; {
		element, rest = cut(rest)
		next := p.next(element)
		if next == nil {
			break
		}
		p = next
	}
	for ; p != nil; p = p.above {
		if route := p.routes.first(r, b); route != nil {
			return route
		}
	}
	return nil
}
