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
func (l *loop) pipeline() {
	if l.latest.Load() == nil {
		return
	}
	begin := time.Now()
	s := l.pending
	if s == nil {
		s = l.unchanged()
	}
	l.pending = nil
	config, verdicts := l.translator.Translate(s, options(l.settings))
	waited := l.secretsWait.waiting()
	if s.Changed = append(l.secretsWait.takeChanged(), s.Changed...); !l.secretsRead() {
		l.waitForSecrets(s)
		return
	}
	if waited {
		l.restartPipeline(s)
		return
	}
	delta := newRenderer(l.settings, s).Delta(l.config, config)
	l.config, l.translated = config, verdicts
	render := newRenderer(l.settings, nil)
	l.document = func() *document.Live { return render.Live(config) }
	if len(delta.Certificates)+len(delta.ListenerGroups) > 0 {
		l.secrets = nil
	}
	l.apply(delta, s)
	if !delta.Empty() {
		l.releaseSecrets()
	}
	l.setChangedEndpoints(s)
	l.fillUp(s)
	l.metrics.applySeconds.Observe(time.Since(begin).Seconds())
	if !l.publish() && slices.ContainsFunc(s.Changed, matterToStatus) {
		l.publishStatus()
	}
}

// unchanged returns the latest snapshot without changes, for a run because the options have changed.
func (l *loop) unchanged() *snapshot.Snapshot {
	s := *l.latest.Load()
	s.Changed, s.Since = nil, s.Sequence
	return &s
}

// newRenderer returns a renderer with the endpoints of a snapshot; without one, backends have none.
func newRenderer(o settings.Config, s *snapshot.Snapshot) *render.Renderer {
	r := &render.Renderer{Ports: func(r *ir.StreamRoute) *document.Port { return l4app.Render(r, o.StreamBind) }}
	if s != nil {
		zone := zoneOf(o)
		r.Endpoints = func(b *ir.Backend) []string { return addresses(resolve(s, b, zone)) }
	}
	return r
}

// withCopies returns an edited copy of the configuration, which is immutable.
func withCopies(config *ir.Config, edit func(*ir.Config)) *ir.Config {
	other := *config
	edit(&other)
	return &other
}

// copies returns other pointers to equal values. What a pointer stands for is rendered again when it is another one.
func copies[T any](list []*T) []*T {
	all := make([]*T, 0, len(list))
	for _, old := range list {
		value := *old
		all = append(all, &value)
	}
	return all
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

// apply changes the live tables. Parts that they refuse are reported, and all others are in effect.
func (l *loop) apply(delta *document.Delta, s *snapshot.Snapshot) {
	l.loadReferred(delta, s)
	l.live.Apply(delta)
	l.applied = l.applied || !delta.Empty() || !l.live.Table.Ready()
	if s != nil {
		loadSecrets(l.live.Secrets, s, delta.Certificates)
		loadListenerSecrets(l.live.Secrets, s, delta.ListenerGroups)
	}
	l.live.Listen(delta)
	l.issuance.Want(delta.Certificates)
	l.becomeReady()
}

// becomeReady has the process say that it is ready, once everything is in effect. Listeners whose server starts with the first
// configuration come after that.
func (l *loop) becomeReady() {
	if l.live.Table.Ready() || l.live.IsEarly() {
		return
	}
	l.awaitIssued()
	// The garbage of the start is as large as the heap that stays. An idle process would keep it for minutes, and no request is
	// served yet that a collection could delay.
	debug.FreeOSMemory()
	l.live.Table.MarkReady()
	l.log.Info("ready: everything there is has been applied for the first time")
}

// loadReferred reads the Secrets that something refers to for the first time. It comes before the tables change: no client is to be
// refused by a host that has not read its certificate authority, or its users, yet.
func (l *loop) loadReferred(delta *document.Delta, s *snapshot.Snapshot) {
	for _, secret := range l.live.Secrets.Update(delta) {
		l.secrets = nil
		if s != nil {
			loadSecret(l.live.Secrets, s, secret)
		}
	}
}
