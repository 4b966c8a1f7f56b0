package annotations

import (
	"maps"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

var sslPassthrough = Annotation{
	Name: "ssl-passthrough",
	Doc: "Forwards the TLS connections for the hosts of the Ingress unchanged to the backend of the path `/`, which " +
		"terminates TLS. This requires the option [`ssl_passthrough`](caddyfile.md#ssl_passthrough). All other " +
		"settings of these hosts apply only to requests without TLS. See [TLS](tls.md#passthrough).",
	Values: booleans, Example: "true", Default: "false", Scope: ScopeIngress, Risk: RiskLow, Passthrough: true,
	Parse: nginx.Into(func(s *Settings) *bool { return &s.Passthrough }, nginx.Bool),
}

// PassthroughGuard returns the first guard that TLS connections to the backend of the path "/" would bypass if they
// were passed through: the name of its phase, which requests it rejects, and whether the phase is temporary. guard is
// ir.NoRequests if there is no such guard. A guard that decides by what a request contains, such as a password, is
// ignored, unless its phase is mandatory: as in ingress-nginx, the backend checks passed-through requests.
func (s *Settings) PassthroughGuard() (step string, guard ir.Guard, temporary bool) {
	for i := range phases {
		p := &phases[i]
		if p.Name == serverPhase {
			if step, guard = s.Server().PassthroughGuard(); guard != ir.NoRequests {
				return step, guard, false
			}
		}
		if guard = ir.Strictest(p.of(s, "/")); guard >= ir.SomeClients || p.mandatory && guard != ir.NoRequests {
			return p.Name, guard, p.temporary
		}
	}
	return "", ir.NoRequests, false
}

// PassthroughGuard returns the first guard of the snippets that passed-through TLS connections would bypass, like the
// method of Settings. A guard of a location counts, because otherwise clients could request the location from the
// backend of the path "/". s may be nil.
func (s *Server) PassthroughGuard() (step string, guard ir.Guard) {
	if s == nil {
		return "", ir.NoRequests
	}
	if guard = ir.Strictest(s.Filters); guard >= ir.SomeClients {
		return serverPhase, guard
	}
	for i := range s.Locations {
		l := &s.Locations[i]
		if guard = l.guard(); guard >= ir.SomeClients && l.Match.Type != ir.LocationNamed {
			return "location " + l.Match.Path + " of " + serverSnippetName, guard
		}
	}
	return "", ir.NoRequests
}

// guard returns the strictest guard of the location. The response 404 that ends a location without a Service is only a
// guard if the location does not respond to any request itself.
func (l *ServerLocation) guard() ir.Guard {
	if ir.RejectAll(l.Filters) {
		return ir.AllRequests
	}
	filters := l.Filters
	if l.Service == nil {
		filters = filters[:len(filters)-1]
	}
	return ir.Strictest(filters)
}

// VoidWithPassthrough returns the sorted names of the given annotations that have no effect on TLS connections with
// ssl-passthrough, so that their author can be warned.
func VoidWithPassthrough(all map[string]string) []string {
	var void []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		name, ours := nameOf(key)
		row := Table.Find(name)
		if ours && row != nil && row.Ignored == "" && !row.Passthrough && strings.TrimSpace(all[key]) != "" {
			void = append(void, name)
		}
	}
	return void
}
