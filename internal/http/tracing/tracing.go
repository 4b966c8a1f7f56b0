// Package tracing sends a span for each traced request to an OpenTelemetry collector. Requests never wait for the
// collector: spans that the collector does not accept in time are dropped.
package tracing

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/panics"
)

const (
	// exportTime is the maximum time for sending one batch of spans, including retries.
	exportTime = 10 * time.Second
	// lastSpans is the maximum time that a replaced Tracer waits for its open spans to end.
	lastSpans = time.Minute
)

// Tracer sends spans to one OpenTelemetry collector.
type Tracer struct {
	of       ir.Collector
	provider *sdktrace.TracerProvider
	trace.Tracer
	// holders is a reference count: the number of open spans, plus one until Retire or Flush is called. When it reaches
	// zero, the channel idle is closed, and no more spans can be started.
	holders atomic.Int64
	idle    chan struct{}
}

// New returns a Tracer for the configured collector, or nil if no collector is configured. The collector does not have
// to be reachable yet. exports counts sent and lost spans.
func New(of *ir.Collector, exports *Exports) *Tracer {
	c := of.WithDefaults()
	if c.Host == "" {
		return nil
	}
	client, err := otlptracegrpc.New(
		context.Background(), //nolint:forbidigo // No connection is made yet.
		otlptracegrpc.WithEndpoint(net.JoinHostPort(c.Host, strconv.Itoa(c.Port))), otlptracegrpc.WithInsecure(),
		otlptracegrpc.WithTimeout(exportTime),
	)
	if err != nil {
		exports.refuse(err)
		return nil
	}
	return newTracer(of, client, exports)
}

// newTracer returns a Tracer that sends the spans to an exporter, with the other settings of the collector.
func newTracer(of *ir.Collector, to sdktrace.SpanExporter, exports *Exports) *Tracer {
	c := of.WithDefaults()
	t := &Tracer{of: *of, idle: make(chan struct{})}
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSampler(samplerOf(&c)), sdktrace.WithResource(resourceOf(&c)),
		sdktrace.WithBatcher(
			&exporter{to, exports}, sdktrace.WithMaxQueueSize(c.Queue),
			sdktrace.WithMaxExportBatchSize(min(c.Batch, c.Queue)),
			sdktrace.WithBatchTimeout(c.Delay), sdktrace.WithExportTimeout(exportTime),
		),
	)
	t.Tracer = t.provider.Tracer("github.com/k8singress/k8singress")
	t.holders.Store(1)
	return t
}

// Sends reports whether t was created with equal settings, so that it can stay in use. If t is nil, Sends reports
// whether the settings contain no collector.
func (t *Tracer) Sends(of *ir.Collector) bool {
	if t == nil {
		return of.Host == ""
	}
	return t.of == *of
}

func samplerOf(c *ir.Collector) sdktrace.Sampler {
	sampler := sdktrace.AlwaysSample()
	switch c.Sampler {
	case ir.SampleAll:
	case ir.SampleNone:
		sampler = sdktrace.NeverSample()
	case ir.SampleRatio:
		sampler = sdktrace.TraceIDRatioBased(c.Ratio)
	}
	if c.OwnChoice {
		return sampler
	}
	return sdktrace.ParentBased(sampler)
}

// resourceOf returns the OpenTelemetry resource of all spans: the service name and the attributes in
// OTEL_RESOURCE_ATTRIBUTES.
func resourceOf(c *ir.Collector) *resource.Resource {
	all, err := resource.Merge(resource.Default(), resource.NewSchemaless(attribute.String("service.name", c.Service)))
	if err != nil {
		return resource.NewSchemaless(attribute.String("service.name", c.Service))
	}
	return all
}

// acquire increments the reference count for a new span. It returns false if the Tracer is shut down.
func (t *Tracer) acquire() bool {
	for {
		holders := t.holders.Load()
		if holders == 0 {
			return false
		}
		if t.holders.CompareAndSwap(holders, holders+1) {
			return true
		}
	}
}

func (t *Tracer) release() {
	if t.holders.Add(-1) == 0 {
		close(t.idle)
	}
}

// Retire shuts the Tracer down once all open spans have ended, but after lastSpans at the latest. It returns
// immediately. It must be called at most once, and not after Flush. t may be nil.
func (t *Tracer) Retire() {
	if t == nil {
		return
	}
	t.release()
	panics.Go("tracing/retire", func() {
		timer := time.NewTimer(lastSpans)
		defer timer.Stop()
		select {
		case <-t.idle:
		case <-timer.C:
		}
		t.shutdown()
	})
}

// Flush sends all finished spans and shuts the Tracer down. Open spans are lost. It must be called at most once, and
// not after Retire. t may be nil.
func (t *Tracer) Flush() {
	if t != nil {
		t.release()
		t.shutdown()
	}
}

func (t *Tracer) shutdown() {
	background := context.Background() //nolint:forbidigo // The time limit ends it.
	ctx, cancel := context.WithTimeout(background, exportTime)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // Spans that are still in the queue are lost and not counted.
}
