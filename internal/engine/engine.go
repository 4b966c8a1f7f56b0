// Package engine is the one loop: it takes snapshots from a source of objects and carries what changed through
// translation, rendering and apply to status. It is the only package that knows all the others.
package engine

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/apply"
	"github.com/k8singress/k8singress/internal/certs"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/endpoints"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/issuance"
	"github.com/k8singress/k8singress/internal/live"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/snapshot"
	"github.com/k8singress/k8singress/l4app"
)

// Source is where objects come from: a cluster or a folder.
type Source interface {
	// Run follows the objects until ctx ends.
	Run(ctx context.Context)
	// Store holds the objects.
	Store() *snapshot.Store
	// Synced is closed when the store has held every object once.
	Synced() <-chan struct{}
}

// Reporter is a source that has verdicts of its own, such as on files that cannot be read.
type Reporter interface {
	Verdicts() []*report.Verdict
}

// Follower is a source that reads Secrets only when it is asked to.
type Follower interface {
	// Follow says which Secrets are to be read from now on, and whether all of them have been: found, or known to be missing
	// or out of reach. The store wakes its reader when the last one has.
	Follow(secrets iter.Seq[ir.Ref]) (read bool)
}

// Publisher writes the status of objects, with the TCP and UDP ports that are open. Publish does not block, and the newest
// value wins.
type Publisher interface {
	Reporter
	Run(ctx context.Context)
	Publish(*report.Report, *snapshot.Snapshot, settings.Config, []*ir.StreamRoute)
	Leader() bool
	// Changed receives when the Verdicts have changed.
	Changed() <-chan struct{}
}

// Engine holds the tables that requests are served from, and starts the loop that changes them. It outlives the Caddy
// configurations that use it. Its methods may be called on any goroutine.
type Engine struct {
	log       *zap.Logger
	source    Source
	publisher Publisher
	metrics   *metrics
	endpoints *endpoints.Table
	live      *apply.Live
	issuance  *issuance.Manager

	start    sync.Once
	cancel   context.CancelFunc
	done     chan struct{}
	resign   context.CancelFunc
	resigned chan struct{}
	adoption atomic.Pointer[adoption]
	adopted  chan struct{}
	started  chan struct{}
	loads    chan load
	state    atomic.Pointer[state]
	// patchFailure is why the structure could not be completed last; it is nil after success.
	patchFailure atomic.Pointer[string]
	// latest is the newest snapshot; it is nil before there is one.
	latest atomic.Pointer[snapshot.Snapshot]
}

// adoption is a Caddy configuration that begins to use the engine.
type adoption struct {
	ctx      caddy.Context
	settings settings.Config
	// document is what an engine without source serves until it is given another one.
	document *document.Live
}

// load is a document to be served by an engine without source. served is closed when it is.
type load struct {
	document *document.Live
	served   chan struct{}
}

// state is what the admin API serves. It is immutable.
type state struct {
	generation uint64
	document   func() *document.Live
	// config is the result of the translation; without a source it is empty.
	config *ir.Config
	report *report.Report
	// changed is closed when there is a newer state.
	changed chan struct{}
}

// New makes an engine that does nothing yet. A nil source makes one that takes documents by Load; a nil publisher one
// that writes no status.
func New(source Source, publisher Publisher, log *zap.Logger) *Engine {
	table := endpoints.NewTable()
	e := &Engine{
		log: log, source: source, publisher: publisher, metrics: newMetrics(), endpoints: table,
		live:     apply.NewLive(table, log),
		issuance: issuance.New(log),
		done:     make(chan struct{}),
		resigned: make(chan struct{}),
		adopted:  make(chan struct{}, 1),
		started:  make(chan struct{}, 1),
		loads:    make(chan load),
	}
	e.state.Store(&state{
		document: func() *document.Live { return &document.Live{} }, config: &ir.Config{}, report: &report.Report{},
		changed: make(chan struct{}),
	})
	return e
}

// Table serves the HTTP requests.
func (e *Engine) Table() *live.Table { return e.live.Table }

// Certificates answers the TLS handshakes.
func (e *Engine) Certificates() *certs.Store { return e.live.Certificates }

// HasSource says whether the engine follows a cluster or a folder.
func (e *Engine) HasSource() bool { return e.source != nil }

// Adopt tells the engine that a Caddy configuration uses it from now on, and starts it with the first one. It does not
// wait: it is called while Caddy loads the configuration. An engine without source serves the document d, which may be
// nil, until Load gives it another one.
func (e *Engine) Adopt(ctx caddy.Context, s settings.Config, d *document.Live) {
	// What is provisioned under the configuration has to outlive it: requests go on while Caddy loads the next one.
	ctx.Context = context.WithoutCancel(ctx.Context)
	e.adoption.Store(&adoption{ctx: ctx, settings: s, document: d})
	select {
	case e.adopted <- struct{}{}:
	default:
	}
	e.start.Do(e.run)
}

// ServerStarted tells the engine that a server of a Caddy configuration listens from now on, to which listeners of documents belong. It
// does not wait.
func (e *Engine) ServerStarted() {
	select {
	case e.started <- struct{}{}:
	default:
	}
}

// Destruct ends the engine when no Caddy configuration uses it any more. It does not wait: what runs may itself be
// waiting for Caddy.
func (e *Engine) Destruct() error {
	e.startNoMore()
	if e.cancel != nil {
		e.cancel()
	}
	return nil
}

// startNoMore ends an engine that has not been started. After it, what run sets may be read.
func (e *Engine) startNoMore() { e.start.Do(func() { close(e.done) }) }

// Ports are those of TCP and UDP, for what may be called on any goroutine.
func (e *Engine) Ports() *l4app.Ports { return e.live.Ports() }

// Done is closed when everything has ended after Destruct.
func (e *Engine) Done() <-chan struct{} { return e.done }

// resignTime is how long Resign waits for the API server.
const resignTime = 3 * time.Second

// Resign ends the writing of status, and gives the Lease back, because the process ends: the next replica need not wait
// for the Lease to run out. The tables go on serving. It waits a short while. An engine that has not been started never
// will be. The TCP and UDP ports outlast the engine then, until Ports.Leave.
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
	// The engine belongs to no configuration, so its context comes from none.
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
	running.Loop("engine/issuance", func() { e.issuance.Run(ctx, e.leads) })
	running.Loop("engine/loop", func() { newLoop(e).run(ctx) })
	panics.Go("engine/end", func() {
		running.Wait()
		close(e.done)
	})
}
