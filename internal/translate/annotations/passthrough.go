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
// ignored: as in ingress-nginx, the backend checks passed-through requests.
func (s *Settings) PassthroughGuard() (step string, guard ir.Guard, temporary bool) {
	for i := range phases {
		p := &phases[i]
		filters := p.of(s, "/")
		if server := s.Server(); server != nil && p.Name == serverPhase {
			filters = server.Filters
		}
		if guard = ir.Strictest(filters); guard >= ir.SomeClients {
			return p.Name, guard, p.temporary
		}
	}
	return "", ir.NoRequests, false
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
