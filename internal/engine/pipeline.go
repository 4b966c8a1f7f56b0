package engine

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/endpoints"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/render"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/snapshot"
	"github.com/k8singress/k8singress/l4app"
)

// pipeline carries what is pending through translation, rendering and apply. It does nothing while a part is missing:
// objects, or a Caddy configuration to provision under.
func (e *Engine) pipeline() {
	if e.latest == nil || e.adoption.Load() == nil || !e.live.Adopted() {
		return
	}
	begin := time.Now()
	s := e.pending
	if s == nil {
		s = e.unchanged()
	}
	e.pending = nil
	config, verdicts := e.translator.Translate(s, options(e.settings))
	delta := newRenderer(e.settings, s).Delta(e.config, config)
	e.config = config
	e.apply(delta, s)
	e.publishReport(config, verdicts)
	e.metrics.applySeconds.Observe(time.Since(begin).Seconds())
}

// unchanged is the latest snapshot, in which nothing changed: for a run because the options did.
func (e *Engine) unchanged() *snapshot.Snapshot {
	s := *e.latest
	s.Changed, s.Since = nil, s.Sequence
	return &s
}

func newRenderer(o settings.Config, s *snapshot.Snapshot) *render.Renderer {
	return &render.Renderer{
		Endpoints: func(b *ir.Backend) []string { return addresses(resolve(s, b)) },
		Ports:     func(r *ir.StreamRoute) *document.Port { return l4app.Render(r, o.StreamBind) },
	}
}

func resolve(s *snapshot.Snapshot, b *ir.Backend) []ir.Endpoint {
	return endpoints.Resolve(s.EndpointSlices(b.Namespace, b.Service), b)
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
	e.live.Apply(delta)
	for _, c := range delta.Certificates {
		if c != nil && s != nil {
			namespace, name := c.SecretRef()
			e.loadSecret(s, namespace, name)
		}
	}
	if e.live.Table.Ready() {
		return
	}
	e.live.Table.MarkReady()
	e.log.Info("ready: everything there is has been applied for the first time")
}

// serve applies a document that came from outside.
func (e *Engine) serve(d *document.Live) error {
	if !e.live.Adopted() {
		return errNotStarted
	}
	e.apply(document.Diff(e.state.Load().document(), d), nil)
	e.publishState(func() *document.Live { return d })
	return nil
}

// mend puts our part of the structure into Caddy's configuration where it is missing. It calls Caddy's admin API, which
// loads the configuration again if it was; that is counted.
func (e *Engine) mend(ctx context.Context) {
	changed, err := e.structure(ctx)
	if err != nil {
		if ctx.Err() == nil {
			e.log.Error("applying the structure through Caddy's admin API; trying again", zap.Error(err))
			e.retry.failed()
		}
		return
	}
	if changed {
		e.metrics.reloads.WithLabelValues(structureReason).Inc()
	}
	if !e.live.Pending() {
		e.retry.succeeded()
	}
}

// publishReport makes the outcome of a run known.
func (e *Engine) publishReport(config *ir.Config, verdicts *report.Report) {
	s, o := e.latest, e.settings
	e.translated = verdicts
	e.publishState(func() *document.Live { return newRenderer(o, s).Live(config) })
}

// publishState merges the verdicts of all stages, and hands them to the log, the publisher and the admin API.
func (e *Engine) publishState(document func() *document.Live) {
	if e.live.Pending() {
		e.retry.arm()
	}
	verdicts := e.translated.With(e.live.Verdicts())
	if r, ok := e.source.(Reporter); ok {
		verdicts = verdicts.With(r.Verdicts())
	}
	old := e.state.Load()
	e.logChanges(old.report, verdicts)
	e.state.Store(&state{
		generation: old.generation + 1, settings: e.settings, document: document, report: verdicts, config: e.config,
		counts: e.counts(), changed: make(chan struct{}),
	})
	close(old.changed)
	e.publishStatus(verdicts)
}

func (e *Engine) publishStatus(verdicts *report.Report) {
	if e.publisher != nil && e.latest != nil {
		e.publisher.Publish(verdicts, e.latest, e.settings)
	}
}

// logChanges writes each new problem once.
func (e *Engine) logChanges(before, now *report.Report) {
	for _, v := range report.Changed(before, now) {
		for _, p := range v.Problems {
			write := e.log.Warn
			if p.Severity == report.Info {
				write = e.log.Info
			}
			write(p.Message, zap.String("object", v.Object.String()), zap.String("reason", string(p.Reason)),
				zap.String("field", p.Field))
		}
	}
}
