package live

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/http/accesslog"
	"github.com/k8singress/k8singress/internal/http/compress"
	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/http/tracing"
	"github.com/k8singress/k8singress/internal/http/variables"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// defaultDrain is the default of ingress-nginx's worker-shutdown-timeout.
const defaultDrain = 240 * time.Second

// global holds the settings that apply to all requests.
type global struct {
	clients         atomic.Pointer[realip.Policy]
	options         atomic.Pointer[ir.Global]
	responseHeaders atomic.Pointer[responseHeaders]
	block           atomic.Pointer[filter.Block]
	log             atomic.Pointer[accesslog.Log]
	streams         atomic.Pointer[accesslog.Streams]
	// compress is nil if compression is disabled.
	compress atomic.Pointer[compress.Policy]
	status   atomic.Pointer[statusReaders]
	// tracer is nil if tracing is disabled.
	tracer atomic.Pointer[tracing.Tracer]

	handshakes atomic.Pointer[handshakes]
	// uncovered is an index without virtual hosts. It is used for host names that no listener of the port covers.
	uncovered atomic.Pointer[index]
	// fallback is the route to the default backend, or nil if there is no default backend.
	fallback atomic.Pointer[Route]
}

// SetGlobal replaces the settings that apply to all requests. New requests use the new settings. If g is nil,
// ingress-nginx's defaults are used. The variables are an exception: a listener group uses them from its next update
// on, because the filters of its routes may decide about access with them. See UpdateVariables.
func (t *Table) SetGlobal(g *ir.Global) {
	if g == nil {
		g = &ir.Global{}
	}
	t.global.options.Store(g)
	t.global.responseHeaders.Store(newResponseHeaders(g, t.options.Load()))
	t.setAccessLog(g)
	t.setTracer(&g.Collector)
	readers := newStatusReaders(&g.Status)
	t.global.status.Store(&readers)
	t.global.compress.Store(compress.New(&g.Compression))
	t.global.handshakes.Store(newHandshakes(g))
	t.setDefault(g.DefaultBackend)
	t.global.clients.Store(realip.New(g.Clients))
	t.global.block.Store(filter.NewBlock(g.Block))
	// If a variable is not valid, the requests that use it fail.
	t.variables, _ = variables.New(g.Variables)
	t.global.uncovered.Store(&index{variables: t.variables})
	t.connections.Configure(g.KeepAlive, g.KeepAliveTimeout)
}

// UpdateVariables sets the variables last passed to SetGlobal in all listener groups that were not updated since.
func (t *Table) UpdateVariables() {
	for g := range t.allGroups {
		if g.index.Load().variables != t.variables {
			t.update(g, nil)
		}
	}
}

// setAccessLog opens the access logs that the administrator's options and the ConfigMap configure. Files that are
// already open stay open.
func (t *Table) setAccessLog(g *ir.Global) {
	if t.options.Load().NoAccessLog {
		t.global.log.Store(nil)
		t.global.streams.Store(nil)
		return
	}
	t.global.log.Store(accesslog.New(&g.AccessLog, t.logs, t.options.Load().AccessLog))
	t.global.streams.Store(accesslog.NewStreams(&g.StreamLog, t.logs))
}

// setTracer replaces the tracer if the OpenTelemetry collector has changed. Requests in flight keep the old tracer.
func (t *Table) setTracer(of *ir.Collector) {
	if t.global.tracer.Load().Sends(of) {
		return
	}
	t.global.tracer.Swap(tracing.New(of, t.spans)).Retire()
}

// Spans returns the exporters of OpenTelemetry spans. They also provide metrics.
func (t *Table) Spans() *tracing.Exports { return t.spans }

// AccessLogs returns the open files of the access log. The result also provides metrics about these files.
func (t *Table) AccessLogs() *accesslog.Files { return t.logs }

// AccessLog returns the log of HTTP requests. Nil means that requests are not logged.
func (t *Table) AccessLog() *accesslog.Log { return t.global.log.Load() }

// StreamLog returns the log of TCP and UDP connections. Nil means that they are not logged.
func (t *Table) StreamLog() *accesslog.Streams { return t.global.streams.Load() }

// Global returns the settings last passed to SetGlobal. The result is never nil. The caller must not change it.
func (t *Table) Global() *ir.Global { return t.global.options.Load() }

// ErrorBodies reports whether the controller's own error responses have a body.
func (t *Table) ErrorBodies() bool { return !t.options.Load().NoErrorBodies }

// Clients returns the policy that determines the client address of a request.
func (t *Table) Clients() *realip.Policy { return t.global.clients.Load() }

// HSTS returns the value of the Strict-Transport-Security header for responses over TLS. An empty value means that
// there is no such header.
func (t *Table) HSTS() string { return t.global.responseHeaders.Load().hsts }

// StreamPolicy returns the settings for TLS passthrough connections. TCP and UDP ports have their own settings.
func (t *Table) StreamPolicy() ir.StreamPolicy { return t.Global().Streams }

// DrainTime returns how long streams, such as WebSocket connections, may continue after their route was removed.
func (t *Table) DrainTime() time.Duration { return cmp.Or(t.Global().Drain, defaultDrain) }

// responseHeaders holds the header changes that apply to all responses: secure for responses over TLS, and plain for
// responses without TLS.
type responseHeaders struct {
	hsts          string
	headers       *exchange.Headers
	secure, plain exchange.Changes
}

func newResponseHeaders(g *ir.Global, o *Options) *responseHeaders {
	a := &responseHeaders{hsts: g.HSTS.Header()}
	var own message.Changes
	a.headers, own.Set = exchange.NewHeaders(&g.Headers, o.ViaEndpoints)
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

// Always is called to set Exchange.ForAllResponses: it returns the header changes that apply to every response. secure
// must be true if the request used TLS.
func (t *Table) Always(secure bool) exchange.Changes {
	if secure {
		return t.global.responseHeaders.Load().secure
	}
	return t.global.responseHeaders.Load().plain
}
