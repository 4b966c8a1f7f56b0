package featuretests

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestTracingKeys checks the ConfigMap's settings for all traces: the parent of a request's span, the name of the
// span, and the sampling.
func TestTracingKeys(t *testing.T) {
	collector, objects := newSpans(t), traced(t, nil)
	in := start(t, objects, "configmap default/global")
	const sampled = "Traceparent: 00-" + trace + "-" + parent + "-01"
	ask := func(path string) string {
		return in.sendBy(in.client, in.origin("a.example")+path, "GET", nil, sampled).body
	}
	// tells waits until the endpoint gets a trace header for which isSo returns true.
	tells := func(what string, isSo func(told string) bool, keys ...string) {
		t.Helper()
		in.write("manifests.yaml", objects+collector.keys(append(keys, `enable-opentelemetry: "true"`)...))
		in.eventually(what, func() error {
			if got := ask("/"); !isSo(got) {
				return fmt.Errorf("the endpoint is told %q", got)
			}
			return nil
		})
	}
	tells("a part of the trace", func(told string) bool { return strings.Contains(told, trace) })
	tells("a trace of its own", func(told string) bool {
		return strings.HasSuffix(told, "-01 ") &&
			!strings.Contains(told, trace)
	},
		`opentelemetry-trust-incoming-span: "false"`, "opentelemetry-operation-name: $request_method of $host")
	ask("/named")
	if span := collector.of(in, "/named"); span.Name != "GET of a.example" ||
		hex.EncodeToString(span.TraceId) == trace {
		t.Errorf("the span is %q of %x", span.Name, span.TraceId)
	}
	hasSpan := func(told string) bool { return strings.HasSuffix(told, "-01 ") }
	hasNone := func(told string) bool { return strings.HasSuffix(told, "-00 ") }
	tells("the sampler decides", hasNone, "otel-sampler: AlwaysOff", `otel-sampler-parent-based: "false"`)
	tells("all of them", hasSpan, "otel-sampler: TraceIdRatioBased", `otel-sampler-ratio: "1"`,
		`otel-sampler-parent-based: "false"`)
}

// TestTracingBatches checks that spans are batched for the time in the ConfigMap, and that the configured number of
// spans is queued while the collector does not read.
func TestTracingBatches(t *testing.T) {
	collector, objects := newSpans(t), traced(t, nil)
	in := start(t, objects, "configmap default/global")
	set := func(service string, keys ...string) {
		in.write("manifests.yaml", objects+
			global(append(keys, `enable-opentelemetry: "true"`, "otel-service-name: "+service,
				"otlp-collector-host: "+collector.host, fmt.Sprintf("otlp-collector-port: %q", collector.port))...))
		in.settles()
	}
	exported := func(target string) {
		in.get("a.example", target)
		in.eventually("the span of "+target, func() error {
			if collector.count(target) == 0 {
				return errors.New("the collector has no such span")
			}
			return nil
		})
	}
	set("pairs", `otel-schedule-delay-millis: "1"`)
	// Without the key, five seconds would pass between two batches. On a busy machine, the test retries.
	n := 0
	in.eventually("two batches at once", func() error {
		n++
		exported(fmt.Sprint("/first-", n))
		begin := time.Now()
		exported(fmt.Sprint("/second-", n))
		if took := time.Since(begin); took > 3*time.Second {
			return fmt.Errorf("the second batch comes after %v", took)
		}
		return nil
	})
	set("batches", `otel-schedule-delay-millis: "600000"`, `otel-max-export-batch-size: "3"`)
	in.eventually("a batch of three", func() error {
		in.get("a.example", "/")
		if len(collector.batchesOf("batches")) == 0 {
			return errors.New("the collector has no such batch")
		}
		return nil
	})
	for _, batch := range collector.batchesOf("batches") {
		if len(batch) != 3 {
			t.Errorf("a batch has %d spans: %v", len(batch), batch)
		}
	}
	collector.mu.Lock()
	held := make(chan struct{})
	collector.held = held
	collector.mu.Unlock()

	set("batches", `otel-schedule-delay-millis: "1"`, `otel-max-export-batch-size: "1"`, `otel-max-queuesize: "4"`)
	const asked = 100
	for range asked {
		in.get("a.example", "/crowd")
	}
	collector.mu.Lock()
	collector.held = nil
	collector.mu.Unlock()
	close(held)
	in.eventually("spans after those that waited", func() error {
		in.get("a.example", "/after")
		if collector.count("/after") == 0 {
			return errors.New("there are none")
		}
		return nil
	})
	if n := collector.count("/crowd"); n > asked/2 {
		t.Errorf("%d of %d spans have waited, where 4 may", n, asked)
	}
}

// batchesOf returns the batches of one service. The controller of an earlier test may still retry to send spans to a
// collector that had the same port.
func (s *spans) batchesOf(service string) (batches [][]exportedSpan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, batch := range s.batches {
		if len(batch) > 0 && batch[0].service == service {
			batches = append(batches, batch)
		}
	}
	return batches
}

// count returns the number of spans of requests for a target.
func (s *spans) count(target string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range s.all {
		if span.attributes["http.target"] == target {
			n++
		}
	}
	return n
}
