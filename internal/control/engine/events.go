package engine

import (
	"time"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/process/events"
)

// Events returns the bus that emits the events of the engine. The caller must call its method Use with each Caddy
// configuration that is passed to Adopt.
func (e *Engine) Events() *events.Bus { return e.events }

// emitReady emits the event that all objects have been applied for the first time.
func (e *Engine) emitReady() {
	e.events.Emit("k8singress.ready", func() map[string]any { return map[string]any{} })
}

// emitApplied emits the event that a change of the live configuration is in effect. begin is the time when the work on
// the change began.
func (e *Engine) emitApplied(delta *document.Delta, begin time.Time) {
	if delta.Empty() {
		return
	}
	e.events.Emit("k8singress.applied", func() map[string]any {
		return map[string]any{
			"duration": time.Since(begin), "hosts": len(delta.Hosts), "backends": len(delta.Backends),
			"ports": len(delta.Ports), "certificates": len(delta.Certificates), "listeners": len(delta.ListenerGroups),
		}
	})
}

// emitVerdict emits the event that an object has a new problem.
func (e *Engine) emitVerdict(object ir.Ref, p report.Problem) {
	e.events.Emit("k8singress.verdict", func() map[string]any {
		return map[string]any{
			"object": object.String(), "severity": string(p.Severity), "reason": string(p.Reason), "field": p.Field,
			"message": p.Message,
		}
	})
}
