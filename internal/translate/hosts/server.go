package hosts

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// Server is what the snippets of an object and of the ConfigMap configure for the hosts of the object.
type Server struct {
	// Text is the snippet of the object. It is empty if only the ConfigMap has a snippet.
	Text string
	// Closed is true if all paths of the hosts in the namespace must return 503, because the snippet of the object is
	// not supported. Locations are then the locations of the ConfigMap alone, which return 503, too.
	Closed bool
	// Reason is the reason why Closed is true. It may be empty.
	Reason string
	// Filters process the requests for all paths of a host in the namespace of the object, if it owns the host. Shared
	// are the filters of the ConfigMap alone, for paths in other namespaces.
	Filters, Shared []ir.Filter
	// Reads are the names of the variables that the paths of the object read, and that the snippets for servers set. If
	// other snippets apply to a host, which do not set them all, the paths return 503 there.
	Reads []string
	// Limits are the limits that the paths inherit, unless they have limits of their own. SharedLimits are the limits
	// of the ConfigMap alone, for paths in other namespaces. Nil means that there are none.
	Limits, SharedLimits *ir.ZoneLimits
	// MaxHead is the size of request headers that the hosts need, in bytes. It is 0 if the snippets do not set it.
	MaxHead int
	// Guard is the first guard of the snippets that TLS connections would bypass if they were passed through.
	Guard Guard
	// Locations are additional paths. Their types are types of locations.
	Locations []*Path
}

// own reports whether the object itself has a snippet.
func (s *Server) own() bool { return s != nil && (s.Text != "" || s.Closed) }

// guards reports whether the snippet may reject requests.
func (s *Server) guards() bool {
	return s.Closed || s.Limits != nil && s.Limits.Guards() != ir.NoRequests ||
		ir.Strictest(s.Filters) != ir.NoRequests ||
		slices.ContainsFunc(s.Locations, func(p *Path) bool { return ir.Strictest(p.Filters) != ir.NoRequests })
}

// closed returns a replacement for a snippet that cannot be applied. It returns nil if s is nil.
func (s *Server) closed() *Server {
	if s == nil {
		return nil
	}
	closed := &Server{Text: s.Text, Closed: true, Reason: s.Reason}
	for _, p := range s.Locations {
		if p.Everywhere {
			closed.Locations = append(closed.Locations, p.Closed())
		}
	}
	return closed
}

// findServer sets m.server: the oldest object of the namespace that owns the host with a snippet of its own, or else
// the oldest object with the snippet of the ConfigMap. Other objects with another snippet get a warning.
func (m *mergeState) findServer() {
	for r := range m.ofOwner(true) {
		switch {
		case r.Server == nil:
		case m.server == nil, r.Server.own() && !m.server.Server.own():
			m.server = r
		}
	}
	for _, r := range m.fallbacks {
		if m.Host.Host == "" && m.server == nil && m.Owner.Is(r.namespace()) && r.Server != nil {
			m.server = r
		}
	}
	m.reportOtherServers()
	m.reportUnset()
	if m.server != nil && m.server.Server.Closed {
		m.reportClosed()
	}
}

// reportClosed adds an error to each other object of the namespace whose paths get 503 because of the snippet of the
// host.
func (m *mergeState) reportClosed() {
	reason := m.server.Server.Reason
	if reason != "" {
		reason = " (" + reason + ")"
	}
	for r := range m.ofOwner(true) {
		if r == m.server {
			continue
		}
		m.problem(r, report.Problem{Severity: report.Error, Reason: report.HostConflict, Message: fmt.Sprintf(
			"all requests for the paths on %s get 503, because the annotation %s of %s is refused%s: correct it there",
			OrEvery(m.Host.Host), report.ServerSnippet, m.server.Ref(), reason)})
	}
}

// reportOtherServers adds a warning to each object whose snippet is not the snippet of the host.
func (m *mergeState) reportOtherServers() {
	for r := range m.ofOwner(true) {
		if r.Server.own() && r != m.server && r.Server.Text != m.server.Server.Text {
			m.otherServer(r, "the setting has no effect on "+OrEvery(m.Host.Host)+": "+
				snapshot.Elder(m.server.Object, r.Object)+" has a different server-snippet, which is used instead")
		}
	}
	for r := range m.ofOwner(false) {
		if !r.Server.own() || !m.serves(r) {
			continue
		}
		outcome := ""
		if r.Server.guards() {
			outcome = ". The paths of this Ingress on the host get 503, because the snippet may restrict access"
		}
		m.otherServer(r, fmt.Sprintf("the setting has no effect on %s: %s in another namespace owns this host%s",
			OrEvery(m.Host.Host), m.ownerFor(r), outcome))
	}
}

func (m *mergeState) otherServer(r *Contribution, message string) {
	m.problem(r, report.Problem{
		Severity: report.Warning, Reason: report.HostConflict, Field: report.AnnotationField(report.ServerSnippet),
		Message: message,
	})
}

// withServer returns a path of an object with the filters that snippets add for the whole host. It returns p if there
// are no such filters.
func (m *mergeState) withServer(r *Contribution, p *Path) *Path {
	owner := m.inherits(r)
	switch {
	case owner && m.server.Server.Closed, !owner && r.Server.own() && r.Server.guards(), m.unsetVariable(r) != "":
		return p.Closed()
	case owner:
		return p.withLimits(m.server.Server.Limits).With(m.server.Server.Filters)
	case r.Server != nil:
		return p.withLimits(r.Server.SharedLimits).With(r.Server.Shared)
	}
	return p.withLimits(nil)
}

// inherits reports whether the snippet of the host applies to the paths of an object.
func (m *mergeState) inherits(r *Contribution) bool {
	return m.server != nil && m.Owner.Is(r.namespace())
}

// unsetVariable returns the name of a variable that the paths of an object read because its server-snippet sets it, but
// that the snippets for the host do not set. A snippet may decide about access by the variable. unsetVariable returns
// an empty string if there is no such variable.
func (m *mergeState) unsetVariable(r *Contribution) string {
	if r.Server == nil || r.Server.Reads == nil {
		return ""
	}
	filters := r.Server.Shared
	if m.inherits(r) {
		filters = m.server.Server.Filters
	}
	var set []string
	for _, f := range filters {
		if program, ok := f.(ir.Program); ok {
			set = append(set, program.OwnVariables()...)
		}
	}
	for _, name := range r.Server.Reads {
		if !slices.Contains(set, name) {
			return name
		}
	}
	return ""
}

// reportUnset adds an error to each object whose paths get 503 because of a variable that is not set.
func (m *mergeState) reportUnset() {
	for _, r := range m.results {
		if name := m.unsetVariable(r); name != "" && m.serves(r) {
			m.problem(r, report.Problem{
				Severity: report.Error, Reason: report.HostConflict,
				Field: report.AnnotationField(report.ConfigurationSnippet), Message: fmt.Sprintf(
					"the server-snippet that sets $%s does not apply to %s, so all requests for the paths of this "+
						"Ingress on the host get 503: set the variable here, or define it with map in http-snippet",
					name, OrEvery(m.Host.Host)),
			})
		}
	}
}

// With returns a copy of the path with the filters of the host.
func (p *Path) With(filters []ir.Filter) *Path {
	if filters == nil {
		return p
	}
	whole := *p
	whole.Filters = slices.Concat(p.Filters[:p.Early], inherited(filters, p.Filters), p.Filters[p.Early:])
	return &whole
}

// withLimits returns a copy of the path with the limits of the host, which may be nil. As in nginx, a path with limits
// of request rates inherits no such limits, and likewise for limits of concurrent requests. Statuses are inherited for
// limits of annotations, too.
func (p *Path) withLimits(of *ir.ZoneLimits) *Path {
	rate, zones, rest := p.ownLimits()
	if of == nil && zones == nil {
		return p
	}
	var limits ir.ZoneLimits
	if of != nil {
		limits = *of
	}
	if rate.RequestsPerSecond+rate.RequestsPerMinute > 0 {
		limits.Requests = nil
	}
	if rate.Connections > 0 {
		limits.Connections = nil
	}
	if zones != nil {
		limits = zones.Within(&limits)
	}
	filters := slices.Clip(p.Filters[:p.BeforeLimits])
	if rate.Zone != "" {
		rate.Status = cmp.Or(limits.Status, rate.Status)
		rate.ConnectionsStatus = cmp.Or(limits.ConnectionsStatus, rate.ConnectionsStatus)
		filters = append(filters, rate)
	}
	if limits.Guards() != ir.NoRequests {
		filters = append(filters, limits)
	}
	whole := *p
	whole.Filters = append(filters, rest...)
	return &whole
}

// ownLimits returns the limits of the annotations and of the snippets of a path, and the filters that follow them. rate
// has no zone if there are no such annotations, and zones is nil if there is no such snippet.
func (p *Path) ownLimits() (rate ir.RateLimit, zones *ir.ZoneLimits, rest []ir.Filter) {
	rest = p.Filters[p.BeforeLimits:]
	if len(rest) > 0 {
		if of, ok := rest[0].(ir.RateLimit); ok {
			rate, rest = of, rest[1:]
		}
	}
	if len(rest) > 0 {
		if of, ok := rest[0].(ir.ZoneLimits); ok {
			zones, rest = &of, rest[1:]
		}
	}
	return rate, zones, rest
}

// inherited returns the filters of a host without what a path replaces, as in nginx: a path with sub_filter of its own
// does not inherit it. Programs decide themselves what they replace.
func inherited(filters, own []ir.Filter) []ir.Filter {
	if !slices.ContainsFunc(own, is[ir.Substitution]) {
		return filters
	}
	return without[ir.Substitution](filters)
}

// without returns the filters that do not have the type T.
func without[T ir.Filter](filters []ir.Filter) []ir.Filter {
	return slices.DeleteFunc(slices.Clone(filters), is[T])
}

func is[T ir.Filter](f ir.Filter) bool {
	_, ok := f.(T)
	return ok
}

// locations adds the locations of snippets to the host. The regular expressions of the object precede the ones of the
// host, and the regular expressions of the ConfigMap follow them.
func (m *mergeState) locations() {
	r, filters := m.server, []ir.Filter(nil)
	if r != nil {
		filters = r.Server.Filters
	} else if r = m.anyServer(); r != nil {
		filters = r.Server.Shared
	} else {
		return
	}
	// The locations have their own access rules, or have inherited the rules of the host.
	filters = without[ir.AccessRules](filters)
	var before, behind []*ir.Route
	for _, p := range r.Server.Locations {
		switch route := m.locationRoute(r, p.With(filters)); {
		case p.Everywhere:
			behind = append(behind, route)
		case r == m.server:
			before = append(before, route)
			m.reportReplaced(p)
		}
	}
	m.Host.Routes = slices.Concat(before, m.Host.Routes, behind)
}

// anyServer returns the oldest object with a snippet that is served on the host, for the locations of the ConfigMap.
func (m *mergeState) anyServer() *Contribution {
	for r := range m.contributions {
		if r.Server != nil && m.serves(r) {
			return r
		}
	}
	return nil
}

func (m *mergeState) locationRoute(r *Contribution, p *Path) *ir.Route {
	filters := m.toHTTPS(p)
	if m.conflicting[r] {
		filters = append(filters, ir.Forbidden)
	}
	return &ir.Route{
		Match:   ir.Match{PathMatch: p.Match, Everywhere: p.Everywhere, Within: p.Within},
		Filters: append(filters, p.Filters...), Backends: ir.To(p.Backend), Proxy: p.Proxy, Origin: r.Ref(),
		RoutePolicy: p.RoutePolicy,
	}
}
