package engine

import (
	"runtime/debug"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/control/render"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
	"github.com/k8singress/k8singress/l4app"
)

// The method pipeline translates the changed Kubernetes objects, renders the result as a live configuration, and
// applies it. It does nothing if there is no snapshot of the objects yet.
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
	o := options(l.settings)
	o.Followed, o.TrustedProxies = l.services.Ports(), l.trustsProxies.Load()
	config, verdicts := l.translator.Translate(s, o)
	if o.Views {
		l.reviews.SetView(l.translator.View(s))
	}
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
	l.recordDelta(delta)
	l.findFollowed()
	if !delta.Empty() {
		l.releaseSecrets()
	}
	l.setChangedEndpoints(s)
	l.resolveShortened(s)
	l.metrics.applySeconds.Observe(time.Since(begin).Seconds())
	l.metrics.applied.SetToCurrentTime()
	l.emitApplied(delta, begin)
	if !l.publish() && slices.ContainsFunc(s.Changed, matterToStatus) {
		l.publishStatus()
	}
}

// The method unchanged returns the latest snapshot with an empty list of changed objects. It is used to translate the
// objects again after only the options have changed.
func (l *loop) unchanged() *snapshot.Snapshot {
	s := *l.latest.Load()
	s.Changed, s.Since = nil, s.Sequence
	return &s
}

// newRenderer returns a renderer that takes the endpoints of backends from a snapshot. If s is nil, backends get no
// endpoints.
func newRenderer(o settings.Config, s *snapshot.Snapshot) *render.Renderer {
	r := &render.Renderer{Ports: func(r *ir.StreamRoute) *document.Port { return l4app.Render(r, o.StreamBind) }}
	if s != nil {
		zone := zoneOf(o)
		r.Endpoints = func(b *ir.Backend) []string { return addresses(resolve(s, b, zone)) }
	}
	return r
}

// withCopies copies config, calls edit with the copy, and returns the copy. config itself is immutable.
func withCopies(config *ir.Config, edit func(*ir.Config)) *ir.Config {
	other := *config
	edit(&other)
	return &other
}

// copies returns pointers to copies of the values. The renderer compares pointers, so it renders the copies again.
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

// apply applies a change of the live configuration to the tables that route requests and connections. If a route or
// port cannot be applied, the problem is reported on the object that defines it, and everything else takes effect.
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
	if len(delta.Hosts) > 0 {
		l.issuance.RecheckOnDemand()
	}
	l.becomeReady()
}

// becomeReady marks the process as ready once the first configuration is in effect. If the HTTP server of a listener
// has not started yet, it does nothing and is called again later.
func (l *loop) becomeReady() {
	if l.live.Table.Ready() || l.live.IsEarly() {
		return
	}
	l.awaitIssued()
	// Startup leaves about as much garbage as live data, and an idle process would keep the garbage for minutes.
	// Collecting it now delays no requests, because the process does not serve requests yet.
	debug.FreeOSMemory()
	l.live.Table.MarkReady()
	l.log.Info("ready: all objects have been applied for the first time")
	l.emitReady()
}

// loadReferred loads the contents of the Secrets to which the live configuration did not refer before the change delta.
// It must be called before delta is applied, so that a host never rejects clients only because its certificate
// authority or user list is not loaded yet.
func (l *loop) loadReferred(delta *document.Delta, s *snapshot.Snapshot) {
	for _, secret := range l.live.Secrets.Update(delta) {
		l.secrets = nil
		if s != nil {
			loadSecret(l.live.Secrets, s, secret)
		}
	}
}
