package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate"
)

// statusPeriod is the interval at which the status of objects is compared with the wanted status. This is necessary
// because the loop does not run when only the status of an object changes.
const statusPeriod = time.Minute

// loop is the main loop, which processes changes of Kubernetes objects. Its fields may only be used on the goroutine of
// run; methods of Engine, which run on other goroutines, must not use them.
type loop struct {
	*Engine
	settings   settings.Config
	translator *translate.Translator
	// config is the model that the last translation of the Kubernetes objects returned, and translated is the list of
	// problems that it found. document returns the live configuration that is rendered from config.
	config     *ir.Config
	translated *report.Report
	document   func() *document.Live
	// slices caches the problems of EndpointSlices, if the objects are read from a folder of manifests.
	slices sliceChecks
	// open lists the TCP and UDP ports that were last published as open.
	open []*ir.StreamRoute
	// pending is a snapshot with the changes that have not been translated and applied yet, or nil if there are no such
	// changes.
	pending *snapshot.Snapshot
	// secrets is the set of Secrets to which config refers. It is nil until refersTo computes it.
	secrets     map[ir.Name]bool
	secretsWait secretsWait
	// applied is set if a change has taken effect, but the problems found while applying it have not been published
	// yet.
	applied   bool
	summaries summaries
	hash      configHash
	hold      holdoff
	retry     backoff
	patching  patching
}

func newLoop(e *Engine) *loop {
	first := e.state.Load()
	return &loop{
		Engine: e, translator: translate.New(), config: first.config, translated: first.report,
		document: first.document,
		hold:     newHoldoff(), retry: newBackoff(), patching: patching{ended: make(chan patched, 1)},
	}
}

// run processes changes until ctx ends.
//
//nolint:gocyclo // Each case of the select statement is one kind of change.
func (l *loop) run(ctx context.Context) {
	defer l.live.Close()
	defer l.patching.running.Wait()
	// The loop was started by the first call of Adopt, so the channel already contains a value.
	<-l.adopted
	l.adopt(ctx)
	synced := l.synced()
	var changed <-chan struct{}
	again := time.NewTicker(statusPeriod)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.adopted:
			l.adopt(ctx)
		case <-l.started:
			l.startListeners()
		case <-synced:
			// Do not process changes before all objects have been received: an Ingress whose Secret is still missing
			// would look like an Ingress without a Secret.
			synced, changed = nil, l.source.Store().Changed()
			l.observe()
			l.hold.now()
		case <-changed:
			l.observe()
		case <-again.C:
			l.checkDrift()
		case next := <-l.loads:
			l.serveDocument(next.document)
			close(next.served)
		case <-l.issuance.Changed():
			l.takeIssued()
			l.publish()
		case <-l.services.Changed():
			l.follow()
		case <-l.publisherChanged():
			l.publish()
		case <-l.webhook.Changed():
			l.publish()
		case <-l.hold.timer.C:
			l.hold.done()
			l.pipeline()
		case <-l.retry.timer.C:
			l.retryFailed(ctx)
		case m := <-l.patching.ended:
			l.onPatched(ctx, m)
		}
	}
}

// synced returns a channel that is closed when the source has read all objects. It returns nil if there is no source.
func (l *loop) synced() <-chan struct{} {
	if l.source == nil {
		return nil
	}
	return l.source.Synced()
}

// startListeners opens the listeners of each listener group (additional ports with their own hosts) whose HTTP server
// has started.
func (l *loop) startListeners() {
	if !l.live.IsEarly() {
		return
	}
	l.live.StartListeners()
	l.becomeReady()
	l.publish()
}

// publisherChanged returns a channel that receives a value when the problems that the publisher has found have changed.
func (l *loop) publisherChanged() <-chan struct{} {
	if l.publisher == nil {
		return nil
	}
	return l.publisher.Changed()
}

// checkDrift looks for changes that cause no event: another client has overwritten the status of an object, a
// certificate has expired, or the message of a summary was delayed.
func (l *loop) checkDrift() {
	if !l.live.Table.Ready() {
		return
	}
	if l.publisher != nil {
		l.observe()
	}
	if !l.live.Stale() && !l.summaries.held || !l.publish() {
		l.publishStatus()
	}
}

// adopt applies the options of the newest Caddy configuration, and provisions the handlers of all routes under it.
func (l *loop) adopt(ctx context.Context) {
	a := l.adoption.Load()
	if !slices.Equal(l.settings.StreamBind, a.settings.StreamBind) {
		// Replace the routes of TCP and UDP ports by copies. The renderer compares pointers, so it renders all ports
		// again, with the listen addresses of the new options.
		l.config = withCopies(l.config, func(c *ir.Config) { c.StreamRoutes = copies(c.StreamRoutes) })
	}
	if l.settings.Zone != a.settings.Zone {
		// Likewise, replace the backends by copies, so that their endpoints are selected again. The selection depends
		// on the availability zone, which is one of the new options.
		l.config = withCopies(l.config, func(c *ir.Config) { c.Backends = copies(c.Backends) })
	}
	l.configureWebhook(l.settings.AdmissionWebhook, a.settings.AdmissionWebhook)
	l.settings, l.slices = a.settings, sliceChecks{}
	l.hashAll(a.settings.NginxMetrics.On())
	l.configureIssuance(a)
	l.keepCertificates(a.settings.AdmissionWebhook)
	l.live.Reach(reaching(a.settings), serverAddresses(a.settings), ownAddresses(a.settings))
	if s := l.latest.Load(); s != nil {
		l.live.ReachService(listeningOf(s, a.settings.PublishService))
	}
	l.live.Names.Configure(naming(a.settings))
	l.live.Table.SetOptions(live.Options{
		StrictPaths: a.settings.StrictPaths, NoErrorBodies: a.settings.ErrorBodies == settings.ErrorBodiesOff,
		Via: a.settings.Via, ViaEndpoints: a.settings.ViaEndpoints,
		NoAccessLog: a.settings.AccessLog == settings.AccessLogOff, AccessLog: accessLog(a.settings),
		NoRouteMetrics: a.settings.DisableRouteMetrics,
	})
	l.live.Table.Meters().SetNginx(nginxOptions(a.settings.NginxMetrics))
	proxy.SetFiles(cmp.Or(a.settings.BodyFiles, proxy.DefaultFiles))
	if err := l.live.Adopt(a.ctx, adminAddress(a.settings), a.settings.StreamChains); err != nil {
		l.log.Error("cannot provision the handler chains of the new Caddy configuration", zap.Error(err))
	}
	ready := l.live.Table.Ready()
	l.applied = l.applied || ready
	switch {
	case l.source != nil:
		// Translate and render everything again, because the options may have changed.
		l.hold.now()
	case ready:
		l.publish()
	case a.document != nil:
		l.serveDocument(a.document)
	}
	l.patchStructure(ctx)
}

// observe takes the newest snapshot from the source. Changed endpoints and Secrets take effect at once if possible; all
// other changes are processed together by the next run of the pipeline.
func (l *loop) observe() {
	s := l.source.Store().Take()
	// Store a copy without the list of changed objects: the list is long at first, and readers of the latest snapshot
	// do not need it.
	latest := *s
	latest.Changed = nil
	before := l.latest.Swap(&latest)
	l.guardService(s)
	var slow []ir.Ref
	for _, ref := range s.Changed {
		switch {
		case ref.Kind == kinds.EndpointSlice && l.refreshEndpoints(s, ref.Namespace, ref.Name):
		case ref.Kind == kinds.Secret && l.refreshSecret(before, s, ref):
		default:
			slow = append(slow, ref)
		}
	}
	l.postpone(s, slow)
	_, reports := l.source.(Reporter)
	switch {
	case len(slow) > 0 || l.secretsWait.waiting():
		l.hold.change()
	case l.applied:
		l.publish()
	case reports && len(s.Changed) == 0:
		// The source has notified the loop although no object has changed. So the list of problems that the source
		// reports has changed, and must be published.
		l.publish()
	}
}

// postpone keeps a snapshot for the next run of the pipeline. changed lists the objects in it that have changed.
// Changed objects of earlier snapshots that have not been processed yet are added to this list.
func (l *loop) postpone(s *snapshot.Snapshot, changed []ir.Ref) {
	work := *s
	work.Changed = changed
	if l.pending != nil {
		work = *work.Joined(l.pending)
	}
	l.pending = &work
}

// retryFailed tries again to open ports that could not be opened, and to add the required servers and settings to
// Caddy's configuration.
func (l *loop) retryFailed(ctx context.Context) {
	l.retry.armed = false
	l.live.RetryPorts()
	l.recordApplied(false)
	l.patchStructure(ctx)
	l.publish()
}
