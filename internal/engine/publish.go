package engine

import (
	"slices"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/render"
	"github.com/k8singress/k8singress/internal/report"
)

// publish tells the log, the publisher and the admin API what has become of the objects. It returns false when there is
// nothing to tell: nothing has been applied since, and no verdict is another one.
func (e *Engine) publish() bool {
	if e.live.Pending() {
		e.retry.arm()
	}
	if !e.live.Table.Ready() {
		return false
	}
	old, verdicts := e.state.Load(), e.verdicts()
	if !e.applied && same(old.report, verdicts) {
		return false
	}
	e.logChanges(old.report, verdicts)
	e.metrics.countProblems(verdicts, &e.settings)
	e.applied = false
	e.state.Store(&state{
		generation: old.generation + 1, document: e.document, config: e.config, report: verdicts, changed: make(chan struct{}),
	})
	close(old.changed)
	e.publishStatus()
	return true
}

// verdicts merges those of all stages.
func (e *Engine) verdicts() *report.Report {
	merged := e.translated.With(e.live.Verdicts()).With(e.issuance.Problems()).With(e.withoutCiphers())
	if r, ok := e.source.(Reporter); ok {
		merged = merged.With(r.Verdicts())
	}
	if e.publisher != nil {
		merged = merged.With(e.publisher.Verdicts())
	}
	return merged
}

// same compares reports, which share the verdicts that have not changed.
func same(a, b *report.Report) bool {
	return slices.EqualFunc(a.Verdicts, b.Verdicts, (*report.Verdict).Equal)
}

// publishStatus hands over the newest objects with the verdicts on them.
func (e *Engine) publishStatus() {
	if s := e.latest.Load(); e.publisher != nil && s != nil {
		e.publisher.Publish(e.state.Load().report, s, e.settings, e.openRoutes())
	}
}

// openRoutes returns the TCP and UDP ports that are in effect. When the process ends, its ports close, and those of the other
// replicas do not: it goes on to say what it said before.
func (e *Engine) openRoutes() []*ir.StreamRoute {
	var open []*ir.StreamRoute
	if len(e.config.StreamRoutes) > 0 {
		names := e.live.OpenPorts()
		for _, r := range e.config.StreamRoutes {
			if _, found := slices.BinarySearch(names, render.PortName(r)); found {
				open = append(open, r)
			}
		}
	}
	// They close after this is true, and not before.
	if !caddy.Exiting() {
		e.open = open
	}
	return e.open
}

// matterToStatus says whether the status of objects may depend on one by more than a verdict.
func matterToStatus(changed ir.Ref) bool { return changed.Kind != kinds.Secret }

// levels are those of the log.
var levels = map[report.Severity]zapcore.Level{
	report.Error: zapcore.ErrorLevel, report.Warning: zapcore.WarnLevel, report.Info: zapcore.InfoLevel,
}

// logChanges writes each new problem once.
func (e *Engine) logChanges(before, now *report.Report) {
	for _, v := range report.Changed(before, now) {
		var known []report.Problem
		if old := before.Get(v.Object); old != nil {
			known = old.Problems
		}
		for _, p := range v.Problems {
			if slices.Contains(known, p) {
				continue
			}
			e.log.Log(levels[p.Severity], p.Message, zap.String("object", v.Object.String()), zap.String("severity", string(p.Severity)),
				zap.String("reason", string(p.Reason)), zap.String("field", p.Field))
		}
	}
}
