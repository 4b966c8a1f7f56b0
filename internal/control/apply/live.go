// Package apply puts a new configuration into effect. It changes the tables that route requests and connections, which
// needs no reload of Caddy. It also changes the static part of Caddy's configuration through the admin API.
package apply

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/process/netaddr"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
	"github.com/k8singress/k8singress/internal/upstream/health"
	"github.com/k8singress/k8singress/internal/upstream/resolver"
	"github.com/k8singress/k8singress/l4app"
)

// Live holds the tables that route requests and connections, and can be changed without a reload of Caddy. The methods
// of Live must be called on a single goroutine, except where noted. The tables themselves serve requests concurrently.
type Live struct {
	Table *live.Table
	Secrets
	// Names resolves the host names of ExternalName Services. The caller must configure it and call its Run method.
	Names *resolver.Resolver

	// Health runs the active health checks of endpoints.
	Health *health.Checker

	endpoints *endpoints.Table
	ports     *l4app.Ports
	listening listening
	log       *zap.Logger
	ctx       caddy.Context
	// held contains the problem of each TCP or UDP port that could not be opened. The key is the name of the port.
	held map[string]*report.Verdict
}

// NewLive returns a Live without hosts and routes. table holds the endpoints of all backends.
func NewLive(table *endpoints.Table, log *zap.Logger) *Live {
	secrets := NewSecrets()
	served := live.NewTable(table, secrets.Trust)
	secrets.Users = served.Shared().Users
	return &Live{
		Table: served, Secrets: secrets, endpoints: table,
		ports: l4app.New(log, l4app.Tables{
			Endpoints: table, Certificates: secrets.Certificates, Trust: secrets.Trust, AccessLog: served.StreamLog,
		}),
		// The resolver may set addresses in the table directly, because the table is safe for concurrent use.
		Names:  resolver.New(func(id string, addresses []string) { table.Set(id, endpointsAt(addresses)) }, log),
		Health: health.New(table.Guard(), secrets.Trust.Authority),
		held:   map[string]*report.Verdict{}, log: log.Named("listeners"),
		listening: listening{groups: map[string]*document.ListenerGroup{}, opened: map[string]*front.Opened{},
			gone: map[string]bool{}},
	}
}

// Adopt provisions the handler chains under a new Caddy configuration. ctx is the context of the configuration, and
// must not end before the chains are replaced. admin is the address of the configuration's admin API. streamChains are
// the definitions of the chains for TCP ports, by name. If the Caddy configuration itself listens on a TCP or UDP port,
// or on the port of a listener, that the controller has opened, Adopt closes this port.
func (l *Live) Adopt(ctx caddy.Context, admin string, streamChains map[string]json.RawMessage) error {
	l.ctx = ctx
	l.recordPorts(nil, l.ports.Adopt(ctx, streamChains))
	l.listening.admin = admin
	l.listen()
	return l.Table.Adopt(ctx)
}

// Apply applies the change d of the live configuration to the tables that route requests and connections. It sets
// endpoints before the routes that use them. The caller must call Listen afterwards.
func (l *Live) Apply(d *document.Delta) {
	if d.Global != nil {
		l.Table.SetGlobal(d.Global)
		l.ports.SetDrain(d.Global.Drain)
	}
	for _, id := range smallestFirst(d.Backends) {
		b := d.Backends[id]
		l.endpoints.Configure(id, b.LoadBalancing)
		l.setBackend(id, b)
		l.check(id, b.LoadBalancing)
	}
	l.Certificates.Update(d.Certificates)
	l.Table.Update(d.Hosts)
	l.updateGroups(d.ListenerGroups)
	l.Table.UpdateVariables()
	l.recordPorts(d.Ports, l.ports.Update(l.ctx, d.Ports))
	l.guardPorts()
	for id, b := range d.Backends {
		if b == nil {
			l.Names.Unfollow(id)
			l.check(id, nil)
			l.endpoints.Delete(id)
			l.endpoints.Guard().SetName(id, false)
		}
	}
}

// smallestFirst returns the IDs of the new and changed backends, sorted by their number of endpoints. The order matters
// if a namespace has more endpoints than its quota allows: only the backends with the most endpoints then lose
// endpoints, and all replicas drop the same endpoints.
func smallestFirst(all map[string]*document.Backend) []string {
	ids := make([]string, 0, len(all))
	for id, b := range all {
		if b != nil {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(all[a].Endpoints), len(all[b].Endpoints)), strings.Compare(a, b))
	})
	return ids
}

// setBackend sets the endpoints of a backend. The endpoints of a backend with an external name are kept until the
// resolver has resolved the name.
func (l *Live) setBackend(id string, b *document.Backend) {
	l.endpoints.Guard().SetName(id, b.ExternalName != "")
	if b.ExternalName != "" {
		l.endpoints.Keep(id)
		l.Names.Follow(id, b.ExternalName)
		return
	}
	l.Names.Unfollow(id)
	l.endpoints.Set(id, endpointsAt(b.Endpoints))
}

// check starts, changes or stops the health check of a backend, as its load-balancing settings require.
func (l *Live) check(id string, b *ir.LoadBalancing) {
	var check *ir.HealthCheck
	if b != nil {
		check = b.HealthCheck
	}
	l.Health.Set(id, l.endpoints.Backend(id), check)
}

func endpointsAt(addresses []string) []ir.Endpoint {
	list := make([]ir.Endpoint, 0, len(addresses))
	for _, address := range addresses {
		list = append(list, ir.Endpoint{Address: address})
	}
	return list
}

func refusedRoute(r live.Refusal) *report.Verdict {
	what := "the path " + r.Path
	if r.Path == "" {
		what = "a part"
	}
	return &report.Verdict{
		Object: ir.ParseRef(r.Origin),
		Problems: []report.Problem{{
			Severity: report.Error, Reason: report.Quarantined,
			Message: what + " of host " + cmp.Or(r.Host, "*") + " is left out: " + r.Err.Error(),
		}},
	}
}

func (l *Live) recordPorts(changed map[string]*document.Port, refused []l4app.Refusal) {
	for name := range changed {
		delete(l.held, name)
	}
	for _, r := range refused {
		l.held[r.Name] = refusedPort(r)
	}
}

// RetryPorts tries again to open the TCP and UDP ports, and the ports of listeners, that could not be opened before.
func (l *Live) RetryPorts() {
	refused := l.ports.Retry(l.ctx)
	clear(l.held)
	l.recordPorts(nil, refused)
	l.listen()
}

// OpenPorts returns the sorted names of the open TCP and UDP ports, such as "tcp/5432".
func (l *Live) OpenPorts() []string { return l.ports.Names() }

// Pending reports whether RetryPorts must be called again later. This is the case if a port could not be opened, or if
// a closed listener still has open connections.
func (l *Live) Pending() bool {
	return len(l.held)+len(l.listening.refused)+len(l.listening.leaving) > 0
}

// Incomplete reports whether a part of the configuration is not in effect, because Caddy rejects a route, or a port
// could not be opened.
func (l *Live) Incomplete() bool {
	return len(l.held)+len(l.listening.refused)+len(l.Table.Refused()) > 0
}

// Verdicts returns the problems that occurred when routes and ports were changed, such as ports that could not be
// opened. It returns one verdict for each object that defines such a route or port.
func (l *Live) Verdicts() []*report.Verdict {
	var all []*report.Verdict
	for _, r := range l.Table.Refused() {
		all = append(all, refusedRoute(r))
	}
	for _, port := range slices.Sorted(maps.Keys(l.held)) {
		all = append(all, l.held[port])
	}
	all = append(all, l.listening.refused...)
	return append(all, l.Secrets.Problems()...)
}

// Ports returns the TCP and UDP ports. The caller may only use methods that are safe for concurrent use.
func (l *Live) Ports() *l4app.Ports { return l.ports }

// Close closes all ports and stops the background goroutines.
func (l *Live) Close() {
	l.Health.Close()
	l.listening.close()
	l.ports.Close()
	l.Table.Close()
}

// listeners maps a network ("tcp" or "udp") to the shell command that lists the processes that listen on its ports.
// Messages recommend this command.
var listeners = map[string]string{"tcp": "ss -ltnp", "udp": "ss -lunp"}

// refusedPort returns a verdict which says that a TCP or UDP port could not be opened. The verdict is on the object
// that defines the port.
func refusedPort(r l4app.Refusal) *report.Verdict {
	protocol, port, _ := strings.Cut(r.Name, "/")
	p := report.Problem{
		Severity: report.Error, Reason: report.PortConflict,
		Message: "port " + r.Name + " is left out: " + r.Err.Error(),
	}
	switch r.Origin.Kind {
	case kinds.ConfigMap:
		p.Field = "data[" + port + "]"
	case kinds.Service:
		p.Field = report.AnnotationField(kinds.OwnPrefix + protocol + "-ports")
	}
	if errors.As(r.Err, new(l4app.RejectedError)) {
		p.Reason = report.Quarantined
	}
	if errors.Is(r.Err, netaddr.ErrHeld) {
		p.Message += ". " + listeners[protocol] + " lists the processes that listen on each port"
	}
	return &report.Verdict{Object: r.Origin, Problems: []report.Problem{p}}
}
