// Package tracing tells a collector of OpenTelemetry of requests, a span for each. A span never holds up a request: what the collector does
// not take in time is dropped.
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

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/panics"
)

const (
	// exportTime is how long a batch may take, with all tries.
	exportTime = 10 * time.Second
	// lastSpans is how long a tracer waits for the spans that are under way when another one takes its place.
	lastSpans = time.Minute
)

// Tracer sends spans to one collector.
type Tracer struct {
	of       ir.Collector
	provider *sdktrace.TracerProvider
	trace.Tracer
	// holders counts the spans under way, and one more until Retire. At zero it stays zero, and idle is closed.
	holders atomic.Int64
	idle    chan struct{}
}

// New returns what sends spans to a collector, whether it is there or not; what becomes of them is told to exports. nil is for no collector.
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
	t := &Tracer{of: *of, idle: make(chan struct{})}
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSampler(samplerOf(&c)), sdktrace.WithResource(resourceOf(&c)),
		sdktrace.WithBatcher(
			&exporter{client, exports}, sdktrace.WithMaxQueueSize(c.Queue), sdktrace.WithMaxExportBatchSize(min(c.Batch, c.Queue)),
			sdktrace.WithBatchTimeout(c.Delay), sdktrace.WithExportTimeout(exportTime),
		),
	)
	t.Tracer = t.provider.Tracer("github.com/k8singress/k8singress")
	t.holders.Store(1)
	return t
}

// Sends says whether a tracer, which may be nil, is the one for a collector.
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

// resourceOf says who sends the spans, with what the environment says besides, in OTEL_RESOURCE_ATTRIBUTES.
func resourceOf(c *ir.Collector) *resource.Resource {
	all, err := resource.Merge(resource.Default(), resource.NewSchemaless(attribute.String("service.name", c.Service)))
	if err != nil {
		return resource.NewSchemaless(attribute.String("service.name", c.Service))
	}
	return all
}

// acquire says that a span is under way, unless no new ones are taken.
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

// Retire ends a tracer, which may be nil, once the spans under way are over, or a while later. It does not wait for that. It is called once.
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

// Flush ends a tracer, which may be nil, at once: what it has is sent, and what is under way is not. It is called once, in place of
// Retire.
func (t *Tracer) Flush() {
	if t != nil {
		t.release()
		t.shutdown()
	}
}

func (t *Tracer) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), exportTime) //nolint:forbidigo // The time limit is the end of it.
	defer cancel()
	_ = t.provider.Shutdown(ctx) // What is still in the queue then is lost, and not counted.
}
