package live

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/mtls"
	"github.com/k8singress/k8singress/internal/proxy"
)

// Route is what requests with one path of one host meet.
type Route struct {
	// Host, Path and Type are as in the document.
	Host, Path, Type string
	// Backend is nil for a chain that answers by itself.
	Backend *balancer.Backend
	// Origin is the object that the route comes from, as "Kind/namespace/name".
	Origin string

	// redirect is for requests without TLS; it may be nil.
	redirect *ir.HTTPSRedirect
	chain    *chain
	// secured are the connections to endpoints over TLS; nil is those that others use as well.
	secured *proxy.Secured
	// access is as in the document.
	access  string
	regex   *regexp.Regexp
	streams *streams
}

// Secured returns how TLS is spoken with the endpoints; nil is without verification, and without a certificate.
func (r *Route) Secured() *proxy.Secured { return r.secured }

// Submatch returns where the route's regular expression matches path, as regexp.FindStringSubmatchIndex does; it is nil
// if the route has none.
func (r *Route) Submatch(path string) []int {
	if r.regex == nil {
		return nil
	}
	return r.regex.FindStringSubmatchIndex(path)
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
	clientAuth *document.ClientAuth
	// passthrough is nil for a host whose TLS ends here.
	passthrough *Passthrough
}

// find returns the route for a clean path, or nil.
func (h *host) find(path string) *Route {
	if r, ok := h.exact[path]; ok {
		return r
	}
	if r := h.longestPrefix(path); r != nil {
		return r
	}
	for _, r := range h.regex {
		if r.regex.MatchString(path) {
			return r
		}
	}
	return nil
}

// longestPrefix goes up from the whole path, element by element, so its cost does not depend on the number of routes.
func (h *host) longestPrefix(path string) *Route {
	if len(h.prefix) == 0 {
		return nil
	}
	path = strings.TrimSuffix(path, "/")
	for path != "" {
		if r, ok := h.prefix[path]; ok {
			return r
		}
		path = path[:strings.LastIndexByte(path, '/')]
	}
	return h.prefix[""]
}

// add puts a route into the index. Of two with the same path and type the first one stays.
func (h *host) add(r *Route) error {
	if !strings.HasPrefix(r.Path, "/") && r.Type != "regex" {
		return fmt.Errorf("the path %q does not begin with a slash", r.Path)
	}
	switch r.Type {
	case "exact":
		addFirst(h.exact, r.Path, r)
	case "prefix":
		addFirst(h.prefix, strings.TrimSuffix(r.Path, "/"), r)
	case "regex":
		// ingress-nginx writes location ~* "^path": from the start, without regard to case.
		compiled, err := regexp.Compile("(?i)^" + r.Path)
		if err != nil {
			return fmt.Errorf("the path %q is no regular expression: %w", r.Path, err)
		}
		r.regex = compiled
		h.regex = append(h.regex, r)
	default:
		return fmt.Errorf("unknown path type %q", r.Type)
	}
	h.all = append(h.all, r)
	return nil
}

func addFirst(m map[string]*Route, path string, r *Route) {
	if _, ok := m[path]; !ok {
		m[path] = r
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
