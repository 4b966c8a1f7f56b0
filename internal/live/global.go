package live

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/accesslog"
	"github.com/k8singress/k8singress/internal/compress"
	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/filter"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/realip"
	"github.com/k8singress/k8singress/internal/tracing"
)

// defaultDrain is ingress-nginx's worker-shutdown-timeout.
const defaultDrain = 240 * time.Second

// global is what holds for every request.
type global struct {
	clients atomic.Pointer[realip.Policy]
	options atomic.Pointer[ir.Global]
	answers atomic.Pointer[answers]
	block   atomic.Pointer[filter.Block]
	log     atomic.Pointer[accesslog.Log]
	streams atomic.Pointer[accesslog.Streams]
	// compress is nil while no answer is compressed.
	compress atomic.Pointer[compress.Policy]
	status   atomic.Pointer[statusReaders]
	// tracer is nil where nothing is traced.
	tracer atomic.Pointer[tracing.Tracer]

	handshakes atomic.Pointer[handshakes]
	// fallback is the route to the default backend; nil is without.
	fallback atomic.Pointer[Route]
}

// SetGlobal replaces what holds for every request, from the next one on; nil is ingress-nginx's defaults.
func (t *Table) SetGlobal(g *ir.Global) {
	if g == nil {
		g = &ir.Global{}
	}
	t.global.options.Store(g)
	t.global.answers.Store(newAnswers(g, t.options.Load()))
	t.setAccessLog(g)
	t.setTracer(&g.Collector)
	readers := newStatusReaders(&g.Status)
	t.global.status.Store(&readers)
	t.global.compress.Store(compress.New(&g.Compression))
	t.global.handshakes.Store(newHandshakes(g))
	t.setDefault(g.DefaultBackend)
	t.global.clients.Store(realip.New(g.Clients))
	t.global.block.Store(filter.NewBlock(g.Block))
	t.connections.Configure(g.KeepAlive, g.KeepAliveTimeout)
}

// setAccessLog opens the logs that the options and the ConfigMap ask for; their files stay open.
func (t *Table) setAccessLog(g *ir.Global) {
	if t.options.Load().NoAccessLog {
		t.global.log.Store(nil)
		t.global.streams.Store(nil)
		return
	}
	t.global.log.Store(accesslog.New(&g.AccessLog, t.logs))
	t.global.streams.Store(accesslog.NewStreams(&g.StreamLog, t.logs))
}

// setTracer replaces what sends spans where it is for another collector. Requests under way end with the one that they began with.
func (t *Table) setTracer(of *ir.Collector) {
	if t.global.tracer.Load().Sends(of) {
		return
	}
	t.global.tracer.Swap(tracing.New(of, t.spans)).Retire()
}

// Spans says what becomes of spans, with metrics.
func (t *Table) Spans() *tracing.Exports { return t.spans }

// AccessLogs are the files of the access log, with their metrics.
func (t *Table) AccessLogs() *accesslog.Files { return t.logs }

// AccessLog is where requests are noted; nil is nowhere.
func (t *Table) AccessLog() *accesslog.Log { return t.global.log.Load() }

// StreamLog is where connections of TCP and UDP ports are noted; nil is nowhere.
func (t *Table) StreamLog() *accesslog.Streams { return t.global.streams.Load() }

// Global is what SetGlobal was given last. It is never nil, and nobody may change it.
func (t *Table) Global() *ir.Global { return t.global.options.Load() }

// Clients tells where requests come from.
func (t *Table) Clients() *realip.Policy { return t.global.clients.Load() }

// HSTS is the value of the Strict-Transport-Security header for answers over TLS; empty is without.
func (t *Table) HSTS() string { return t.global.answers.Load().hsts }

// StreamPolicy is how connections are passed on that no port of their own has: those of Passthrough.
func (t *Table) StreamPolicy() ir.StreamPolicy { return t.Global().Streams }

// DrainTime is how long streams go on after their route has gone.
func (t *Table) DrainTime() time.Duration { return cmp.Or(t.Global().Drain, defaultDrain) }

// answers are the changes to all answers: those over TLS, and the others.
type answers struct {
	hsts          string
	headers       *exchange.Headers
	secure, plain exchange.Changes
}

func newAnswers(g *ir.Global, o *Options) *answers {
	a := &answers{hsts: g.HSTS.Header()}
	var own message.Changes
	a.headers, own.Set = exchange.NewHeaders(&g.Headers)
	if g.ServerTokens {
		own.Default = []message.Field{message.Server.Field(exchange.Pseudonym)}
	}
	if o.Via {
		own.Add = []message.Field{message.Via.Field("1.1 " + exchange.Pseudonym)}
	}
	if own.Default != nil || own.Add != nil || own.Set != nil {
		a.plain = exchange.Changes{&own}
	}
	if a.secure = a.plain; a.hsts != "" {
		secure := own
		secure.Set = slices.Concat([]message.Field{message.StrictTransportSecurity.Field(a.hsts)}, own.Set)
		a.secure = exchange.Changes{&secure}
	}
	return a
}

// Always are the changes to the answers of requests that come with TLS, or without.
func (t *Table) Always(secure bool) exchange.Changes {
	if secure {
		return t.global.answers.Load().secure
	}
	return t.global.answers.Load().plain
}
