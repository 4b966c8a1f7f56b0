package live

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/mtls"
	"github.com/k8singress/k8singress/internal/proxy"
	"github.com/k8singress/k8singress/internal/split"
)

// Route is one path of one host.
type Route struct {
	exchange.Route

	// redirect is for requests without TLS; it may be nil.
	redirect *ir.HTTPSRedirect
	streams  *streams
	// conditions are nil for a route that takes every request with its path; next is the one that is tried where they do not
	// hold, and nil behind the last route of the path.
	conditions *conditions
	next       *Route

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
	// access is as in the document.
	access string
}

// host is the path index of one virtual host.
type host struct {
	name   string
	exact  map[string]*Route
	prefix map[string]*Route
	regex  []*Route
	// all has every route once, in the order of the document.
	all []*Route
	// handshake is nil for a host that has what the global options say.
	handshake *ir.TLSPolicy
	// clients is nil for a host that asks its clients for no certificate.
	clients *mtls.Policy
	// clientAuth is what clients was made of.
	clientAuth *ir.ClientAuth
	// passthrough is nil for a host whose TLS ends here.
	passthrough *Passthrough
}

// find returns the route for a request and its clean path, or nil.
func (h *host) find(path string, r *message.Request) *Route {
	if route := h.exact[path].first(r); route != nil {
		return route
	}
	if route := h.longestPrefix(path, r); route != nil {
		return route
	}
	for _, route := range h.regex {
		if route.Regex.MatchString(path) {
			if route = route.first(r); route != nil {
				return route
			}
		}
	}
	return nil
}

// longestPrefix goes up from the whole path, element by element, so its cost does not depend on the number of routes.
func (h *host) longestPrefix(path string, r *message.Request) *Route {
	if len(h.prefix) == 0 {
		return nil
	}
	path = strings.TrimSuffix(path, "/")
	for path != "" {
		if route := h.prefix[path].first(r); route != nil {
			return route
		}
		path = path[:strings.LastIndexByte(path, '/')]
	}
	return h.prefix[""].first(r)
}

// first returns the first of the routes of one path whose conditions hold, or nil.
func (r *Route) first(of *message.Request) *Route {
	for r != nil && r.conditions != nil && !r.conditions.hold(of) {
		r = r.next
	}
	return r
}

// add puts a route into the index. Routes of one path and type are tried in the order in which they are added.
func (h *host) add(r *Route) error {
	if !strings.HasPrefix(r.Path, "/") && r.Type != "regex" {
		return fmt.Errorf("the path %q does not begin with a slash", r.Path)
	}
	switch r.Type {
	case "exact":
		addTo(h.exact, r.Path, r)
	case "prefix":
		addTo(h.prefix, strings.TrimSuffix(r.Path, "/"), r)
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
	// ingress-nginx writes location ~* "^path": from the start, without regard to case.
	compiled, err := regexp.Compile("(?i)^" + r.Path)
	if err != nil {
		return fmt.Errorf("the path %q is no regular expression: %w", r.Path, err)
	}
	r.Regex = compiled
	h.regex = append(h.regex, r)
	return nil
}

func addTo(m map[string]*Route, path string, r *Route) {
	if first := m[path]; first != nil {
		first.append(r)
	} else {
		m[path] = r
	}
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
	return &host{
		name: name, handshake: d.TLS,
		exact:  make(map[string]*Route),
		prefix: make(map[string]*Route, len(d.Routes)),
		all:    make([]*Route, 0, len(d.Routes)),
	}
}
