package live

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/mtls"
	"github.com/k8singress/k8singress/internal/pattern"
	"github.com/k8singress/k8singress/internal/proxy"
	"github.com/k8singress/k8singress/internal/split"
	"github.com/k8singress/k8singress/internal/tracing"
)

// Route is one path of one host.
type Route struct {
	exchange.Route

	// redirect is for requests without TLS; it may be nil.
	redirect *ir.HTTPSRedirect
	streams  *streams
	// position is that of the route in its host. begin is the text with which every path begins that its regular expression matches.
	position int
	begin    string
	// conditions are nil for a route that takes every request with its path; next is the one that is tried where they do not
	// hold, and nil behind the last route of the path.
	conditions *conditions
	next       *Route

	// errors is nil for a route whose clients get errors as they are.
	errors *errorPages
	// tracing is nil for a route whose requests are not traced.
	tracing *tracing.Route

	// destination is the only one of most routes, and the first one of those with a split.
	destination
	split *split.Split[*destination]
}

// destination is where a request goes, and what it meets on its way.
type destination struct {
	// backend is nil for a chain that answers by itself.
	backend *balancer.Backend
	chain   *chain
	// secured are the connections to endpoints over TLS; nil is those that others use as well.
	secured *proxy.Secured
	// access and users are as in the document.
	access string
	users  []ir.Users
}

// host is the path index of one virtual host.
type host struct {
	name   string
	exact  map[string]*Route
	prefix prefixes
	regex  []*Route
	// aliasOf is the host that answers in place of this one; it is empty for nearly all. expression is for a name that is one, or nil.
	aliasOf    string
	expression *pattern.Pattern
	// aliasBy and aliasSince are as in the document.
	aliasBy    string
	aliasSince int64
	// uniform is isUniform, once all routes are there.
	uniform bool
	// all has every route once, in the order of the document.
	all []*Route
	// handshake is nil for a host that has what the global options say.
	handshake *handshake
	// clients is nil for a host that asks its clients for no certificate.
	clients *mtls.Policy
	// clientAuth is what clients was made of.
	clientAuth *ir.ClientAuth
	// passthrough is nil for a host whose TLS ends here.
	passthrough *Passthrough
}

// find returns the route for a request and its clean path, or nil: the exact path, else the longest prefix, else the first regular
// expression that matches. Where a host has both kinds, a regular expression that stands before that path or prefix in the document
// comes first. It fails where that would take too long.
func (h *host) find(path string, r *message.Request) (*Route, error) {
	budget := pattern.NewBudget()
	plain := h.exact[path].first(r, &budget)
	if plain == nil {
		plain = h.prefix.longest(path, r, &budget)
	}
	before := h.regex
	if plain != nil {
		behind := func(r *Route, position int) int { return r.position - position }
		i, _ := slices.BinarySearchFunc(h.regex, plain.position, behind)
		before = h.regex[:i]
	}
	if route, err := search(before, path, r, &budget); route != nil || err != nil {
		return route, err
	}
	return plain, nil
}

// errTooLong is for a path that patterns of the host need too much time for. Any of them may guard it, so none is passed over.
var errTooLong = exchange.Fail(http.StatusRequestURITooLong, errors.New("the path is too long for the regular expressions of its host"))

// search returns the first of some routes with regular expressions that matches, or nil. Those are passed over that cannot match by how
// they begin, so that the expressions of one namespace use up no time for the paths of another one.
func search(routes []*Route, path string, r *message.Request, b *pattern.Budget) (*Route, error) {
	for _, route := range routes {
		if !pattern.MayBegin(path, route.begin) {
			continue
		}
		switch route.Regex.Search(path, b) {
		case pattern.Unknown:
			return nil, errTooLong
		case pattern.Yes:
			if route = route.first(r, b); route != nil {
				return route, nil
			}
		case pattern.No:
		}
	}
	return nil, nil
}

// first returns the first of the routes of one path whose conditions hold, or nil.
func (r *Route) first(of *message.Request, b *pattern.Budget) *Route {
	for r != nil && r.conditions != nil && !r.conditions.hold(of, b) {
		r = r.next
	}
	return r
}

// add puts a route into the index. Routes of one path and type are tried in the order in which they are added.
func (h *host) add(r *Route) error {
	if !strings.HasPrefix(r.Path, "/") && r.Type != "regex" {
		return fmt.Errorf("the path %q does not begin with a slash", r.Path)
	}
	r.position = len(h.all)
	switch r.Type {
	case "exact":
		h.exact[r.Path] = h.exact[r.Path].with(r)
	case "prefix":
		at := h.prefix.at(r.Path)
		at.routes = at.routes.with(r)
	case "regex":
		if err := h.addRegex(r); err != nil {
			return err
		}
	default:
		return fmt.Errorf("unknown path type %q", r.Type)
	}
	h.all = append(h.all, r)
	return nil
}

func (h *host) addRegex(r *Route) error {
	if i := len(h.regex) - 1; i >= 0 && h.regex[i].Path == r.Path {
		r.Regex = h.regex[i].Regex
		h.regex[i].append(r)
		return nil
	}
	compiled, err := pattern.CompilePath(r.Path)
	if err != nil {
		return err
	}
	r.Regex, r.begin = compiled, pattern.Prefix(r.Path)
	h.regex = append(h.regex, r)
	return nil
}

// with returns the first of the routes of one path when another one has been added. r may be nil.
func (r *Route) with(next *Route) *Route {
	if r == nil {
		return next
	}
	r.append(next)
	return r
}

// append puts a route behind those of the same path. Those that let in the same clients have their streams in common: a
// request may find another one of them when weights or conditions change, and no stream is to end for that.
func (r *Route) append(next *Route) {
	for last := r; ; last = last.next {
		if last.admits() == next.admits() {
			next.streams = last.streams
		}
		if last.next == nil {
			last.next = next
			return
		}
	}
}

func newHost(name string, d *document.Host) *host {
	h := &host{
		name:    name,
		aliasOf: d.AliasOf, aliasBy: d.AliasBy, aliasSince: d.AliasSince,
		exact: make(map[string]*Route),
		all:   make([]*Route, 0, len(d.Routes)),
	}
	if d.TLS != nil {
		h.handshake = newHandshake(d.TLS)
	}
	return h
}
