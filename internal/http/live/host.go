package live

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/meter"
	"github.com/k8singress/k8singress/internal/http/mtls"
	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/http/tracing"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/split"
)

// Route is the configuration for one path of one host. Several routes may have the same path and different conditions.
type Route struct {
	exchange.Route

	// redirect is set if requests without TLS are redirected to HTTPS, otherwise nil.
	redirect *ir.HTTPSRedirect
	streams  *streams
	// position is the index of the route in host.all. begin is the literal prefix of the route's regular expression:
	// only paths that begin with it can match.
	position int
	begin    string
	// everywhere is set for locations that also apply to routes of other namespaces.
	everywhere bool
	// within is the location in which this location stands, or nil.
	within *ir.PathMatch
	// conditions is nil if the route serves all requests for its path. next is the route for the same path that is
	// tried if a request does not meet the conditions. It is nil if there is no such route.
	conditions *conditions
	next       *Route

	// errors configures the error pages. If it is nil, error responses are sent unchanged.
	errors *errorPages
	// tracing is nil for a route whose requests are not traced.
	tracing *tracing.Route

	// The embedded destination receives the requests of the route. If the route has several weighted destinations,
	// split selects one of them for each request, and the embedded destination is the first of them.
	destination
	split *split.Split[*destination]
}

// destination is a backend and the handler chain that processes requests before they are forwarded to the backend.
type destination struct {
	// backend is nil if no request is forwarded, for example if the handler chain responds with a redirect.
	backend *balancer.Backend
	chain   *chain
	// secured configures the TLS connections to endpoints. If it is nil, the destination uses connections that are
	// shared with other destinations.
	secured *proxy.Secured
	// access is a digest of the access rules. users lists the Secrets with user names and passwords. Both are copied
	// from document.Destination.
	access string
	users  []ir.Users
	// meter counts the requests of the destination. It is nil for the default backend, which is not the route of an
	// object: requests that it gets after a reroute count for the route before.
	meter *meter.Route
}

// host is a virtual host. It finds the route for a path.
type host struct {
	name   string
	exact  map[string]*Route
	prefix prefixes
	regex  []*Route
	// locations is nil if no route of the host is a location.
	locations *locations
	// aliasOf is the name of the host whose routes serve the requests, if this host is an alias, otherwise empty.
	// expression is the compiled host name, if the name is a regular expression, otherwise nil.
	aliasOf    string
	expression *pattern.Pattern
	// aliasBy and aliasSince are copied from document.Host: the object that defines the alias, and its creation time.
	aliasBy    string
	aliasSince int64
	// uniform is true if every path of the host has a route, and all routes accept the same clients. Ambiguous paths
	// are then harmless. It is set after all routes have been added.
	uniform bool
	// all lists all routes, in the order of the live configuration.
	all []*Route
	// redirect is the redirect to HTTPS for requests without TLS that match no route. It is nil if these requests are
	// not redirected.
	redirect *ir.HTTPSRedirect
	// handshake is nil for a host that uses the global TLS settings.
	handshake *handshake
	// clients is the policy for client certificates. It is nil if the host does not request client certificates.
	clients *mtls.Policy
	// clientAuth is the configuration from which the policy in the field clients was created.
	clientAuth *ir.ClientAuth
	// passthrough is nil if the controller terminates TLS for the host.
	passthrough *Passthrough
	// onDemand is the object that requests certificates on demand, or the zero value.
	onDemand ir.Origin
}

// routeFor returns the route for a request: the location with a name, or the route for path if the name is empty.
func (h *host) routeFor(x *exchange.Exchange, path, location string) (*Route, error) {
	if location != "" {
		return h.locations.findNamed(location, x.From)
	}
	return h.find(path, x.Request)
}

// find returns the route for a request, or nil if no route matches. path must be the result of message.CleanPath. An
// exact path takes precedence over prefixes, and the longest prefix over shorter prefixes. Regular expressions are
// tried in the order of the live configuration, and take precedence over an exact path or prefix that is listed after
// them. find returns an error if matching takes too long.
//
// Locations apply to the request after this route was found. See locations.find.
func (h *host) find(path string, r *message.Request) (*Route, error) {
	budget := pattern.NewBudget()
	route, err := h.findRoute(path, r, &budget)
	if h.locations == nil || err != nil {
		return route, err
	}
	return h.locations.find(path, route, &budget)
}

// findRoute is like find, without the locations.
func (h *host) findRoute(path string, r *message.Request, budget *pattern.Budget) (*Route, error) {
	plain := h.exact[path].first(r, budget)
	if plain == nil {
		plain = h.prefix.longest(path, r, budget)
	}
	before := h.regex
	if plain != nil {
		behind := func(r *Route, position int) int { return r.position - position }
		i, _ := slices.BinarySearchFunc(h.regex, plain.position, behind)
		before = h.regex[:i]
	}
	if route, err := search(before, path, r, budget); route != nil || err != nil {
		return route, err
	}
	return plain, nil
}

// errTooLong is returned if matching a path against the regular expressions of its host takes too long. The request is
// rejected, because the expression that was not evaluated may belong to a route that restricts access.
var errTooLong = exchange.Fail(http.StatusRequestURITooLong,
	errors.New("the path is too long for the regular expressions of its host"))

// search returns the first route whose regular expression matches path, or nil. An expression is skipped if the path
// does not begin with the literal prefix of the expression. Skipping does not use up the time budget b, so the
// expressions of one namespace do not affect requests for the paths of another namespace.
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

// r.first(of, b) searches the linked list of routes with the same path, starting with r, and returns the first route
// whose conditions the request meets. It returns nil if the request meets the conditions of no route. r may be nil.
func (r *Route) first(of *message.Request, b *pattern.Budget) *Route {
	for r != nil && r.conditions != nil && !r.conditions.hold(of, b) {
		r = r.next
	}
	return r
}

// add adds a route to the host. Routes with equal path and type are tried in the order in which they were added.
func (h *host) add(r *Route) error {
	r.position = len(h.all)
	if ir.MatchType(r.Type).IsLocation() {
		if h.locations == nil {
			h.locations = newLocations(ir.ParseRef(r.Origin).Namespace)
		}
		if err := h.locations.add(r); err != nil {
			return err
		}
		h.all = append(h.all, r)
		return nil
	}
	if !strings.HasPrefix(r.Path, "/") && r.Type != "regex" {
		return fmt.Errorf("the path %q does not begin with a slash", r.Path)
	}
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

// r.with(next) adds the route next to the end of the linked list of routes with the same path. It returns the first
// route of the list: r, or next if r is nil.
func (r *Route) with(next *Route) *Route {
	if r == nil {
		return next
	}
	r.append(next)
	return r
}

// r.append(next) adds the route next to the end of the linked list of routes with the same path, which starts with r.
// Routes in the list with the same access rules share one set of open streams. So an open stream can continue when
// weights or conditions change and its request would match another of these routes.
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
		exact:    make(map[string]*Route),
		all:      make([]*Route, 0, len(d.Routes)),
		redirect: d.HTTPSRedirect,
	}
	if d.TLS != nil {
		h.handshake = newHandshake(d.TLS)
	}
	if d.OnDemand != "" {
		h.onDemand = ir.ParseRef(d.OnDemand)
	}
	return h
}
