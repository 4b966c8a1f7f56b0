package live

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/mtls"
	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/http/tracing"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/split"
)

// Route is one path of one host.
type Route struct {
	exchange.Route

	// redirect configures the redirect to HTTPS for requests without TLS. It may be nil.
	redirect *ir.HTTPSRedirect
	streams  *streams
	// position is the index of the route in host.all. begin is the literal prefix of the route's regular expression:
	// only paths that begin with it can match.
	position int
	begin    string
	// conditions is nil if the route serves all requests for its path. next is the route for the same path that is
	// tried if a request does not meet the conditions. It is nil for the last route of the path.
	conditions *conditions
	next       *Route

	// errors configures the error pages. Nil means that clients get errors unchanged.
	errors *errorPages
	// tracing is nil for a route whose requests are not traced.
	tracing *tracing.Route

	// destination is the destination of the route. If a route has several weighted destinations, split selects one of
	// them, and destination is the first of them.
	destination
	split *split.Split[*destination]
}

// destination is a backend and the handler chain that processes requests before they are forwarded to it.
type destination struct {
	// backend is nil if the chain responds without an endpoint, for example with a redirect.
	backend *balancer.Backend
	chain   *chain
	// secured configures the TLS connections to endpoints. If it is nil, the destination uses connections that are
	// shared with other destinations.
	secured *proxy.Secured
	// access and users are copied from the fields Access and Users of document.Destination.
	access string
	users  []ir.Users
}

// host is the path index of one virtual host.
type host struct {
	name   string
	exact  map[string]*Route
	prefix prefixes
	regex  []*Route
	// If the host is an alias, aliasOf is the name of the host whose routes serve its requests. Otherwise it is empty.
	// If the name of the host is a regular expression, expression is the compiled name. Otherwise it is nil.
	aliasOf    string
	expression *pattern.Pattern
	// aliasBy and aliasSince are copied from the fields AliasBy and AliasSince of document.Host.
	aliasBy    string
	aliasSince int64
	// uniform stores the result of isUniform. It is set after all routes have been added.
	uniform bool
	// all lists each route once, in the order of the live configuration.
	all []*Route
	// handshake is nil for a host that uses the global TLS settings.
	handshake *handshake
	// clients is the policy for client certificates. Nil means that the host does not request them.
	clients *mtls.Policy
	// clientAuth is the configuration from which clients was created.
	clientAuth *ir.ClientAuth
	// passthrough is nil if the controller terminates TLS for the host.
	passthrough *Passthrough
}

// find returns the route for a request, or nil if no route matches. path is the path of the request as returned by
// message.CleanPath. An exact path takes precedence over the longest prefix, and both take precedence over regular
// expressions that follow them in the live configuration. Otherwise the first regular expression that matches is used.
// find returns an error if matching would take too long.
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

// errTooLong is the error for a path that takes too long to match against the regular expressions of the host. Any of
// these expressions may belong to a route that restricts access to the path, so none of them may be skipped.
var errTooLong = exchange.Fail(http.StatusRequestURITooLong,
	errors.New("the path is too long for the regular expressions of its host"))

// search returns the first route whose regular expression matches path, or nil. If the path does not begin with the
// literal prefix of an expression, the expression is skipped and does not use up the time budget. So the expressions of
// one namespace do not slow down the paths of another namespace.
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

// first returns the first route whose conditions the request meets, or nil. r is the start of a linked list of routes
// with the same path. It may be nil.
func (r *Route) first(of *message.Request, b *pattern.Budget) *Route {
	for r != nil && r.conditions != nil && !r.conditions.hold(of, b) {
		r = r.next
	}
	return r
}

// add adds a route to the host. Routes with equal path and type are tried in the order in which they were added.
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

// with appends next to r, a list of routes with the same path, and returns the start of the list. r may be nil.
func (r *Route) with(next *Route) *Route {
	if r == nil {
		return next
	}
	r.append(next)
	return r
}

// append adds a route to the end of the list of routes with the same path. Routes in the list that accept the same
// clients share their streams: after weights or conditions change, a request may match a different route, and this must
// not end its stream.
func (r *Route) append(next *Route) {
	for last := r; ; last = last.next {
		if last.accessKey() == next.accessKey() {
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
