package engine

import (
	"slices"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/k8singress/k8singress/internal/control/render"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
)

// publish passes the problems of all objects to the log, to the publisher and to the admin API. It reports whether it
// did so: it returns false if no change was applied and no problem has changed since the last call. The messages of
// summaries change at most once per summaryPeriod.
func (l *loop) publish() bool {
	if l.live.Pending() {
		l.retry.arm()
	}
	if !l.live.Table.Ready() {
		return false
	}
	old := l.state.Load()
	verdicts := l.summaries.settle(old.report, l.verdicts())
	if !l.applied && slices.EqualFunc(old.report.Verdicts, verdicts.Verdicts, (*report.Verdict).Equal) {
		return false
	}
	l.announceChanges(old.report, verdicts)
	l.metrics.countProblems(verdicts, &l.settings)
	l.applied = false
	l.state.Store(&state{
		generation: old.generation + 1, document: l.document, config: l.config, report: verdicts,
		changed: make(chan struct{}),
	})
	close(old.changed)
	l.publishStatus()
	return true
}

// verdicts merges all known problems into one report. They come from the source of objects, the translation, the
// applied configuration, the webhook, and the publisher.
func (l *loop) verdicts() *report.Report {
	merged := l.translated.With(l.live.Verdicts()).With(l.issuance.Problems()).With(l.webhook.Verdicts())
	if r, ok := l.source.(Reporter); ok {
		merged = merged.With(r.Verdicts())
	}
	if s := l.latest.Load(); s != nil && l.settings.Source != nil && l.settings.Source.Manifests != nil {
		merged = merged.With(l.slices.check(s, l.settings))
	}
	if l.publisher != nil {
		merged = merged.With(l.publisher.Verdicts())
	}
	return merged
}

// publishStatus passes the newest snapshot, and the problems of its objects, to the publisher.
func (l *loop) publishStatus() {
	if s := l.latest.Load(); l.publisher != nil && s != nil {
		l.publisher.Publish(l.state.Load().report, s, l.settings, l.openRoutes())
	}
}

// openRoutes returns the routes of the open TCP and UDP ports. When the process is about to end, it keeps returning the
// routes of the ports that were open before, because the other replicas keep these ports open.
func (l *loop) openRoutes() []*ir.StreamRoute {
	var open []*ir.StreamRoute
	if len(l.config.StreamRoutes) > 0 {
		names := l.live.OpenPorts()
		for _, r := range l.config.StreamRoutes {
			if _, found := slices.BinarySearch(names, render.PortName(r)); found {
				open = append(open, r)
			}
		}
	}
	// Do not change the list of open ports when the process is ending. Caddy sets Exiting before it closes any port.
	if !caddy.Exiting() {
		l.open = open
	}
	return l.open
}

// matterToStatus reports whether a change of the object may require a status update even if no problem has changed.
func matterToStatus(changed ir.Ref) bool { return changed.Kind != kinds.Secret }

// levels maps the severities of problems to log levels.
var levels = map[report.Severity]zapcore.Level{
	report.Error: zapcore.ErrorLevel, report.Warning: zapcore.WarnLevel, report.Info: zapcore.InfoLevel,
}

// announceChanges logs each new problem once, and emits an event for it.
func (l *loop) announceChanges(before, now *report.Report) {
	for _, v := range report.Changed(before, now) {
		var known []report.Problem
		if old := before.Get(v.Object); old != nil {
			known = old.Problems
		}
		for _, p := range v.Problems {
			if slices.Contains(known, p) {
				continue
			}
			l.log.Log(levels[p.Severity], p.Message, zap.String("object", v.Object.String()),
				zap.String("severity", string(p.Severity)),
				zap.String("reason", string(p.Reason)), zap.String("field", p.Field))
			l.emitVerdict(v.Object, p)
		}
	}
}
