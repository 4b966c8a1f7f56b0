// Package apply applies rendered configuration. It changes the live tables from which requests are served, and changes
// the structure through Caddy's admin API.
package apply

import (
	"cmp"
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

// Live holds the live tables. Only one goroutine may use it, but the tables serve requests on any goroutine.
type Live struct {
	Table *live.Table
	Secrets
	// Names resolves the names of ExternalName Services. The caller must configure and run it.
	Names *resolver.Resolver

	// Health runs the health checks of endpoints.
	Health *health.Checker

	endpoints *endpoints.Table
	ports     *l4app.Ports
	listening listening
	log       *zap.Logger
	ctx       caddy.Context
	// held holds the verdicts on the ports that could not be opened.
	held map[string]*report.Verdict
}

// NewLive returns tables without entries.
func NewLive(table *endpoints.Table, log *zap.Logger) *Live {
	secrets := NewSecrets()
	served := live.NewTable(table, secrets.Trust)
	secrets.Users = served.Shared().Users
	return &Live{
		Table: served, Secrets: secrets, endpoints: table,
		ports: l4app.New(log, l4app.Tables{
			Endpoints: table, Certificates: secrets.Certificates, Trust: secrets.Trust, AccessLog: served.StreamLog,
		}),
		// The resolver sets addresses directly, because the table may be changed on any goroutine.
		Names:  resolver.New(func(id string, addresses []string) { table.Set(id, endpointsAt(addresses)) }, log),
		Health: health.New(table.Guard(), secrets.Trust.Authority),
		held:   map[string]*report.Verdict{}, log: log.Named("listeners"),
		listening: listening{groups: map[string]*document.ListenerGroup{}, opened: map[string]*front.Opened{},
			gone: map[string]bool{}},
	}
}

// Adopt provisions handler chains under a new Caddy configuration, which ctx must outlive. admin is the address of its
// admin API. Ports on which the configuration itself listens are closed.
func (l *Live) Adopt(ctx caddy.Context, admin string) error {
	l.ctx = ctx
	l.recordPorts(nil, l.ports.Adopt(ctx))
	l.listening.admin = admin
	l.listen()
	return l.Table.Adopt(ctx)
}

// Apply changes the tables. Endpoints are set before the routes that use them. Listen must be called afterwards.
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

// smallestFirst returns the IDs of the backends in the delta, except removed ones, sorted by the number of their
// endpoints. If a namespace exceeds its quota, the largest backends then lose endpoints, and the result is the same in
// each replica.
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

// setBackend sets the endpoints of a backend. A backend for an external name keeps its endpoints until the name has
// been resolved.
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

// check starts, changes or stops the health check of a backend.
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

// RetryPorts tries again to open the ports that could not be opened, including the ports of listeners.
func (l *Live) RetryPorts() {
	refused := l.ports.Retry(l.ctx)
	clear(l.held)
	l.recordPorts(nil, refused)
	l.listen()
}

// OpenPorts returns the sorted names of the open TCP and UDP ports.
func (l *Live) OpenPorts() []string { return l.ports.Names() }

// Pending reports whether RetryPorts must be called later: a port was refused, or the connections of a closed listener
// have not ended.
func (l *Live) Pending() bool {
	return len(l.held)+len(l.listening.refused)+len(l.listening.leaving) > 0
}

// Verdicts returns the problems that the tables found, for the objects that define the entries.
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

// Ports returns the TCP and UDP ports. Callers may only use methods that are safe on any goroutine.
func (l *Live) Ports() *l4app.Ports { return l.ports }

// Close stops everything that runs.
func (l *Live) Close() {
	l.Health.Close()
	l.listening.close()
	l.ports.Close()
	l.Table.Close()
}

// listeners are the commands that list listening processes, by protocol.
var listeners = map[string]string{"tcp": "ss -ltnp", "udp": "ss -lunp"}

// refusedPort returns the verdict on the object that defines a refused port.
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
	if errors.Is(r.Err, netaddr.ErrHeld) {
		p.Message += ". " + listeners[protocol] + " lists the processes that listen on each port"
	}
	return &report.Verdict{Object: r.Origin, Problems: []report.Problem{p}}
}
