package engine

import (
	"runtime/debug"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/endpoints"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/render"
	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/snapshot"
	"github.com/k8singress/k8singress/l4app"
)

// pipeline carries what is pending through translation, rendering and apply. It does nothing before there are objects.
func (e *Engine) pipeline() {
	if e.latest.Load() == nil {
		return
	}
	begin := time.Now()
	s := e.pending
	if s == nil {
		s = e.unchanged()
	}
	e.pending = nil
	config, verdicts := e.translator.Translate(s, options(e.settings))
	waited := e.unread.waiting()
	if s.Changed = append(e.unread.left(), s.Changed...); !e.secretsRead() {
		e.awaitSecrets(s)
		return
	}
	if waited {
		e.lookAgain(s)
		return
	}
	render := newRenderer(e.settings, s)
	delta := render.Delta(e.config, config)
	e.config, e.translated = config, verdicts
	e.document = func() *document.Live { return render.Live(config) }
	if len(delta.Certificates) > 0 {
		e.secrets = nil
	}
	e.apply(delta, s)
	if !delta.Empty() {
		e.dropSecrets()
	}
	e.settleEndpoints(s)
	e.metrics.applySeconds.Observe(time.Since(begin).Seconds())
	if !e.publish() && slices.ContainsFunc(s.Changed, matterToStatus) {
		e.publishStatus()
	}
}

// unchanged is the latest snapshot, in which nothing changed: for a run because the options did.
func (e *Engine) unchanged() *snapshot.Snapshot {
	s := *e.latest.Load()
	s.Changed, s.Since = nil, s.Sequence
	return &s
}

func newRenderer(o settings.Config, s *snapshot.Snapshot) *render.Renderer {
	zone := zoneOf(o)
	return &render.Renderer{
		Endpoints: func(b *ir.Backend) []string { return addresses(resolve(s, b, zone)) },
		Ports:     func(r *ir.StreamRoute) *document.Port { return l4app.Render(r, o.StreamBind) },
	}
}

// rebound returns the configuration with other pointers to its TCP and UDP ports. They are all rendered again then, as
// they must be for another address to listen on, which is not part of them.
func rebound(config *ir.Config) *ir.Config {
	other := *config
	other.StreamRoutes = make([]*ir.StreamRoute, 0, len(config.StreamRoutes))
	for _, r := range config.StreamRoutes {
		route := *r
		other.StreamRoutes = append(other.StreamRoutes, &route)
	}
	return &other
}

// moved returns the configuration with other pointers to its backends. Their endpoints are looked at again then, as they
// must be in another zone.
func moved(config *ir.Config) *ir.Config {
	other := *config
	other.Backends = make([]*ir.Backend, 0, len(config.Backends))
	for _, b := range config.Backends {
		backend := *b
		other.Backends = append(other.Backends, &backend)
	}
	return &other
}

func resolve(s *snapshot.Snapshot, b *ir.Backend, zone string) []ir.Endpoint {
	return endpoints.Resolve(s.EndpointSlices(b.Namespace, b.Service), b, zone)
}

func addresses(list []ir.Endpoint) []string {
	result := make([]string, 0, len(list))
	for _, endpoint := range list {
		result = append(result, endpoint.Address)
	}
	return result
}

// apply changes the live tables. What they refuse is reported, and the rest is in effect.
func (e *Engine) apply(delta *document.Delta, s *snapshot.Snapshot) {
	e.loadAuthorities(delta, s)
	e.live.Apply(delta)
	e.applied = e.applied || !delta.Empty() || !e.live.Table.Ready()
	if s != nil {
		loadSecrets(e.live.Secrets, s, delta.Certificates)
	}
	e.issuance.Want(delta.Certificates)
	if e.live.Table.Ready() {
		return
	}
	e.awaitIssued()
	// What it took to come so far is garbage now, and as large as what stays. Nothing else gives it back for minutes in a
	// process that has nothing to do, and before it is ready nobody waits for an answer.
	debug.FreeOSMemory()
	e.live.Table.MarkReady()
	e.log.Info("ready: everything there is has been applied for the first time")
}

// loadAuthorities reads the Secrets that something refers to for the first time. It comes before the tables change: no client
// is to be refused by a host that has not read its certificate authority yet.
func (e *Engine) loadAuthorities(delta *document.Delta, s *snapshot.Snapshot) {
	for _, secret := range e.live.Trust.Update(delta) {
		e.secrets = nil
		if s != nil {
			loadSecret(e.live.Secrets, s, secret)
		}
	}
}
