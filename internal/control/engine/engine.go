// Package engine contains the main loop of the controller. The loop takes snapshots of the Kubernetes objects,
// translates them into a live configuration, applies the changes to the tables that route requests, and publishes the
// status of the objects. No other package imports the packages of all these steps.
package engine

import (
	"context"
	"crypto/tls"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/control/apply"
	"github.com/k8singress/k8singress/internal/control/webhook"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/process/events"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/process/wake"
	"github.com/k8singress/k8singress/internal/tls/certs"
	"github.com/k8singress/k8singress/internal/tls/issuance"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
	"github.com/k8singress/k8singress/internal/upstream/services"
	"github.com/k8singress/k8singress/l4app"
)

// Source reads and watches Kubernetes objects, in a cluster or in a folder of manifests.
type Source interface {
	// Run watches the objects until ctx ends.
	Run(ctx context.Context)
	// Store returns the store with the objects that were read.
	Store() *snapshot.Store
	// Synced returns a channel that is closed when the store contains all objects for the first time.
	Synced() <-chan struct{}
}

// Reporter is implemented by a Source that reports problems itself, for example files that cannot be read.
type Reporter interface {
	Verdicts() []*report.Verdict
}

// Follower is implemented by a Source that reads only those Secrets that the engine has requested with Follow.
type Follower interface {
	// Follow sets which Secrets to read from now on. It reports whether the state of all of them is known: found,
	// missing or inaccessible. If it returns false, the store notifies the engine when the last Secret has been read.
	Follow(secrets iter.Seq[ir.Ref]) (read bool)
}

// Publisher writes the status of objects, and adds the open TCP and UDP ports to the controller's Service. Publish does
// not block. If it is called several times before its arguments are processed, only the last call counts.
type Publisher interface {
	Reporter
	Run(ctx context.Context)
	Publish(*report.Report, *snapshot.Snapshot, settings.Config, []*ir.StreamRoute)
	Leader() bool
	// KeepCertificates sets the name of the ValidatingWebhookConfiguration for which the publisher keeps certificates.
	// If it is empty, the publisher keeps none.
	KeepCertificates(configuration string)
	// GetCertificate returns the certificate of the webhook that the publisher keeps. It returns an error until there
	// is one.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Changed returns a channel that receives a value when the problems that Verdicts returns have changed.
	Changed() <-chan struct{}
}

// Engine holds the tables that route requests and connections, and runs the loop that changes them. It outlives the
// Caddy configurations that use it. Its methods are safe for concurrent use.
type Engine struct {
	log       *zap.Logger
	source    Source
	publisher Publisher
	metrics   *metrics
	endpoints *endpoints.Table
	services  *services.Registry
	live      *apply.Live
	issuance  *issuance.Manager
	events    *events.Bus
	// reviews answers the questions of the API server, which webhook receives.
	reviews *webhook.Handler
	webhook *webhook.Server

	start    sync.Once
	cancel   context.CancelFunc
	done     chan struct{}
	resign   context.CancelFunc
	resigned chan struct{}
	adoption atomic.Pointer[adoption]
	adopted  wake.Signal
	// trustsProxies is the last value that was passed to TrustProxies.
	trustsProxies atomic.Bool
	started       wake.Signal
	loads         chan load
	state         atomic.Pointer[state]
	// patchFailure is the error of the last attempt to add the required servers and settings to Caddy's configuration.
	// It is nil after success.
	patchFailure atomic.Pointer[string]
	// applies describes the applied changes. It is never nil.
	applies atomic.Pointer[Applied]
	// latest is the newest snapshot, or nil before the first snapshot.
	latest atomic.Pointer[snapshot.Snapshot]
}

// adoption holds the arguments of Adopt: the context and the options of a Caddy configuration that starts to use the
// engine.
type adoption struct {
	ctx      caddy.Context
	settings settings.Config
	// document is the live configuration to serve if the engine reads no Kubernetes objects. Load replaces it.
	document *document.Live
}

// load is a call of Load that has not returned yet, with the new live configuration. served is closed when this
// configuration is in effect.
type load struct {
	document *document.Live
	served   chan struct{}
}

// state is an immutable snapshot of the engine's state for the admin API.
type state struct {
	generation uint64
	document   func() *document.Live
	// config is the model that was translated from the Kubernetes objects. It is empty if the engine reads no objects.
	config *ir.Config
	report *report.Report
	// changed is closed when a newer state replaces this one.
	changed chan struct{}
}

// New returns an engine that does nothing until Adopt is called. If source is nil, the engine serves the live
// configurations that are passed to Adopt and Load. If publisher is nil, no status is written.
func New(source Source, publisher Publisher, log *zap.Logger) *Engine {
	table, reviews := endpoints.NewTable(), webhook.NewHandler(caddy.Exiting, log)
	e := &Engine{
		log: log, source: source, publisher: publisher, metrics: newMetrics(), endpoints: table,
		services: services.New(),
		live:     apply.NewLive(table, log),
		issuance: issuance.New(log),
		events:   events.NewBus(log),
		reviews:  reviews,
		webhook:  webhook.NewServer(reviews, log),
		done:     make(chan struct{}),
		resigned: make(chan struct{}),
		adopted:  wake.New(),
		started:  wake.New(),
		loads:    make(chan load),
	}
	e.applies.Store(new(Applied))
	e.state.Store(&state{
		document: func() *document.Live { return &document.Live{} }, config: &ir.Config{}, report: &report.Report{},
		changed: make(chan struct{}),
	})
	return e
}

// Table returns the table that routes HTTP requests, which the engine changes while it is in use.
func (e *Engine) Table() *live.Table { return e.live.Table }

// Certificates returns the store with the certificates for TLS handshakes.
func (e *Engine) Certificates() *certs.Store { return e.live.Certificates }

// Services returns the Services that Caddy modules use although no Kubernetes object refers to them.
func (e *Engine) Services() *services.Registry { return e.services }

// HasSource reports whether the engine reads Kubernetes objects from a cluster or a folder.
func (e *Engine) HasSource() bool { return e.source != nil }

// Adopt makes the engine use a new Caddy configuration. The first call starts the engine. Adopt does not wait, because
// it is called while Caddy loads the configuration. If the engine reads no Kubernetes objects, it serves the live
// configuration d, which may be nil, until Load replaces it.
func (e *Engine) Adopt(ctx caddy.Context, s settings.Config, d *document.Live) {
	// Modules that are provisioned with this context must outlive the Caddy configuration, because they serve requests
	// while Caddy loads the next configuration.
	ctx.Context = context.WithoutCancel(ctx.Context)
	e.adoption.Store(&adoption{ctx: ctx, settings: s, document: d})
	e.adopted.Send()
	e.start.Do(e.run)
}

// TrustProxies tells the engine whether a server of the next Caddy configuration trusts proxies (trusted_proxies). The
// ConfigMap then gets a warning if it names proxies, too. It must be called before Adopt.
func (e *Engine) TrustProxies(trusts bool) { e.trustsProxies.Store(trusts) }

// ServerStarted tells the engine that an HTTP server of the Caddy configuration now accepts connections. The listeners
// of listener groups cannot be opened before their server has started. ServerStarted does not wait.
func (e *Engine) ServerStarted() {
	e.started.Send()
}

// Destruct stops the engine after the last Caddy configuration has stopped using it. It does not wait, because the
// engine's goroutines may themselves be waiting for Caddy.
func (e *Engine) Destruct() error {
	e.startNoMore()
	if e.cancel != nil {
		e.cancel()
	}
	return nil
}

// startNoMore prevents the engine from being started. If it has not been started yet, startNoMore closes the channel
// that Done returns. After the call, the fields that the method run sets may be read.
func (e *Engine) startNoMore() { e.start.Do(func() { close(e.done) }) }

// Ports returns the TCP and UDP ports. The caller may only use those methods of Ports that are safe for concurrent use.
func (e *Engine) Ports() *l4app.Ports { return e.live.Ports() }

// Done returns a channel that is closed when the engine has stopped completely after Destruct.
func (e *Engine) Done() <-chan struct{} { return e.done }

// resignTime is the maximum time that Resign waits for the API server.
const resignTime = 3 * time.Second

// Resign stops writing status and releases the Lease when the process is about to end, so that the next leader does not
// have to wait until the Lease expires. It waits at most resignTime. The engine continues to serve requests, and its
// TCP and UDP ports stay open until they are drained. An engine that has not been started can no longer be started.
func (e *Engine) Resign() {
	e.Ports().Outlast()
	e.startNoMore()
	if e.resign == nil {
		return
	}
	e.resign()
	select {
	case <-e.resigned:
	case <-time.After(resignTime):
	}
}

func (e *Engine) run() {
	// The engine outlives each Caddy configuration, so it cannot use the context of a configuration.
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // see above
	e.cancel = cancel
	var running panics.Group
	if e.source != nil {
		running.Go("engine/source", func() { e.source.Run(ctx) })
	}
	if e.publisher != nil {
		leading, resign := context.WithCancel(ctx)
		e.resign = resign
		running.Go("engine/status", func() {
			defer close(e.resigned)
			e.publisher.Run(leading)
		})
	}
	running.Loop("engine/names", func() { e.live.Names.Run(ctx) })
	running.Loop("engine/webhook", func() { e.webhook.Run(ctx) })
	running.Loop("engine/issuance", func() { e.issuance.Run(ctx, e.Leads) })
	running.Loop("engine/loop", func() { newLoop(e).run(ctx) })
	panics.Go("engine/end", func() {
		running.Wait()
		close(e.done)
	})
}
