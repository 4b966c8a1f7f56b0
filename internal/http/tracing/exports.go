package tracing

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
)

// Exports counts exported spans and logs failed exports. It is kept when a Tracer is replaced.
type Exports struct {
	log *zap.Logger
	// Collector exports the numbers of sent and lost spans as Prometheus metrics.
	prometheus.Collector
	sent, lost prometheus.Counter
	failing    atomic.Bool
}

// NewExports returns an Exports with all counters at zero. Failed exports are logged to log.
func NewExports(log *zap.Logger) *Exports {
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8singress_trace_spans_total",
		Help: "The number of request spans, by result: sent to the OpenTelemetry collector, or lost because the " +
			"collector did not accept them.",
	}, []string{"result"})
	return &Exports{log: log, Collector: spans, sent: spans.WithLabelValues("sent"),
		lost: spans.WithLabelValues("lost")}
}

func (e *Exports) refuse(err error) {
	e.log.Error("no spans are sent to the OpenTelemetry collector", zap.Error(err))
}

// record counts the spans of an exported batch. It logs the first failure, and the first success after a failure.
func (e *Exports) record(spans int, err error) {
	if err == nil {
		e.sent.Add(float64(spans))
		if e.failing.Swap(false) {
			e.log.Info("the OpenTelemetry collector accepts spans again")
		}
		return
	}
	e.lost.Add(float64(spans))
	if !e.failing.Swap(true) {
		e.log.Warn("spans are lost, because the OpenTelemetry collector does not accept them", zap.Error(err))
	}
}

// exporter wraps an OpenTelemetry exporter, and reports failed exports to exports. Without it, the OpenTelemetry SDK
// would print the errors to standard error.
type exporter struct {
	sdktrace.SpanExporter
	exports *Exports
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.exports.record(len(spans), e.SpanExporter.ExportSpans(ctx, spans))
	return nil
}
