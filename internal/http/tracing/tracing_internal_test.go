package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// recorder is an exporter that keeps the spans, and fails with err if that is not nil.
type recorder struct {
	err error

	mu    sync.Mutex
	spans []sdktrace.ReadOnlySpan
}

// ExportSpans implements sdktrace.SpanExporter.
func (r *recorder) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = append(r.spans, spans...)
	return r.err
}

// exported returns the spans that were exported until now.
func (r *recorder) exported() []sdktrace.ReadOnlySpan {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spans
}

// Shutdown implements sdktrace.SpanExporter.
func (*recorder) Shutdown(context.Context) error { return nil }

// request returns a request for a.example with these header fields. Each of them is "name: value".
func request(headers ...string) *exchange.Exchange {
	r := &message.Request{
		Method: "GET", Host: "a.example", Target: "/x?y=1", Path: "/x", EscapedPath: "/x", Query: "y=1",
		Major: 1, Minor: 1,
		Conn: message.NewConn(netip.MustParseAddrPort("192.0.2.9:1234"),
			netip.MustParseAddrPort("192.0.2.1:8080"), nil),
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Fields.Add(message.NewField(name, value))
	}
	return &exchange.Exchange{Request: r, Clients: realip.New(ir.Clients{}), Global: &ir.Global{}}
}

// route returns a route of a.example, whose requests are traced with these settings.
func route(of *ir.Tracing) *Route {
	return NewRoute(&exchange.Route{
		Host: "a.example", Path: "/", Type: "prefix", Origin: "Ingress/a/web",
		RoutePolicy: ir.RoutePolicy{Tracing: of},
	})
}

const (
	clientTrace = "0af7651916cd43dd8448eb211c80319c"
	clientSpan  = "b7ad6b7169203331"
	traced      = "traceparent: 00-" + clientTrace + "-" + clientSpan + "-01"
	state       = "tracestate: a=b"
	untraced    = "traceparent: 00-" + clientTrace + "-" + clientSpan + "-00"
)

// TestTraces checks to which trace the span of a request belongs, whether it is exported, and what the endpoint gets.
func TestTraces(t *testing.T) {
	off, own := ir.Collector{Sampler: ir.SampleNone}, ir.Collector{OwnChoice: true}
	// The state is valid, except for its length.
	long := "tracestate: a=" + strings.Repeat("x", 200) + ",b=" + strings.Repeat("x", 200) + ",c=" +
		strings.Repeat("x", 200)
	for name, c := range map[string]struct {
		collector ir.Collector
		of        ir.Tracing
		headers   []string
		// joins is true if the span belongs to the client's trace, and sampled is true if it is exported.
		joins, sampled bool
		state          string
	}{
		"no trace":               {sampled: true},
		"the client's":           {headers: []string{traced, state}, joins: true, sampled: true, state: "a=b"},
		"not to be trusted":      {of: ir.Tracing{Untrusted: true}, headers: []string{traced, state}, sampled: true},
		"invalid":                {headers: []string{"traceparent: 00-x", state}, sampled: true},
		"two":                    {headers: []string{traced, traced}, sampled: true},
		"a long state":           {headers: []string{traced, long}, joins: true, sampled: true},
		"not sampled there":      {headers: []string{untraced}, joins: true},
		"our own choice":         {collector: own, headers: []string{untraced}, joins: true, sampled: true},
		"off":                    {collector: off},
		"off, but sampled there": {collector: off, headers: []string{traced}, joins: true, sampled: true},
		"off for all": {collector: ir.Collector{Sampler: ir.SampleNone, OwnChoice: true}, headers: []string{traced},
			joins: true},
		"a ratio of all":  {collector: ir.Collector{Sampler: ir.SampleRatio, Ratio: 1}, sampled: true},
		"a ratio of none": {collector: ir.Collector{Sampler: ir.SampleRatio, Ratio: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			to := &recorder{}
			tracer := newTracer(&c.collector, to, NewExports(zap.NewNop()))
			x := request(c.headers...)
			tracer.Begin(x, route(&c.of))
			span := x.Span.SpanContext()
			flag := "00"
			if c.sampled {
				flag = "01"
			}
			want := fmt.Sprintf("00-%s-%s-%s", span.TraceID(), span.SpanID(), flag)
			if got, _ := x.Fields.Joined(traceParent); got != want {
				t.Errorf("the endpoint gets the trace %q, want %q", got, want)
			}
			if got, _ := x.Fields.Joined(traceState); got != c.state {
				t.Errorf("the endpoint gets the state %q, want %q", got, c.state)
			}
			if joins := span.TraceID().String() == clientTrace; joins != c.joins {
				t.Errorf("the span belongs to the trace %s", span.TraceID())
			}
			End(x, nil)
			tracer.Flush()
			if len(to.exported()) > 1 || len(to.exported()) == 1 != c.sampled {
				t.Fatalf("%d spans are exported", len(to.exported()))
			}
			if c.sampled && c.joins != (to.exported()[0].Parent().SpanID().String() == clientSpan) {
				t.Errorf("the parent is %s", to.exported()[0].Parent().SpanID())
			}
		})
	}
}

// TestSpanOfTwoRoutes checks that a request has one span, with the name of its last route.
func TestSpanOfTwoRoutes(t *testing.T) {
	for operation, want := range map[string]string{"": "/second", "$host": "a.example"} {
		to := &recorder{}
		tracer := newTracer(&ir.Collector{}, to, NewExports(zap.NewNop()))
		x := request()
		tracer.Begin(x, route(&ir.Tracing{Operation: "first"}))
		parent, _ := x.Fields.Joined(traceParent)
		second := route(&ir.Tracing{Operation: operation})
		second.Path = "/second"
		tracer.Begin(x, second)
		if got, _ := x.Fields.Joined(traceParent); got != parent {
			t.Errorf("the endpoint gets the trace %q, want %q", got, parent)
		}
		End(x, nil)
		tracer.Flush()
		if spans := to.exported(); len(spans) != 1 || spans[0].Name() != want {
			t.Errorf("the spans are %v, want one with the name %q", spans, want)
		}
	}
}

// TestSpans checks the name, the status and the attributes of a span.
func TestSpans(t *testing.T) {
	failure := &exchange.Failure{Status: 503, Err: errors.New("no endpoints")}
	long := strings.Repeat("x", maxText)
	for name, c := range map[string]struct {
		of   ir.Tracing
		x    func(*exchange.Exchange)
		err  error
		want string
	}{
		"a response":      {x: func(x *exchange.Exchange) { x.Status = 200 }, want: "/ 200 Unset "},
		"a name":          {of: ir.Tracing{Operation: "$request_method $host"}, want: "GET a.example 499 Unset "},
		"an invalid name": {of: ir.Tracing{Operation: "$status"}, want: "/ 499 Unset "},
		"a long name":     {of: ir.Tracing{Operation: long + "$uri"}, want: long + " 499 Unset "},
		"invalid UTF-8":   {of: ir.Tracing{Operation: "a\xff"}, want: "a\uFFFD 499 Unset "},
		"the client left": {err: exchange.ErrAborted, want: "/ 499 Unset "},
		"a failure":       {err: failure, want: "/ 503 Error " + failure.Error()},
		"another failure": {err: errors.New("oh"), want: "/ 500 Error oh"},
		"a failure after the head": {x: func(x *exchange.Exchange) { x.Status = 200 }, err: exchange.ErrAborted,
			want: "/ 200 Unset "},
		"a failure of the endpoint": {x: func(x *exchange.Exchange) { x.Status = 502 }, want: "/ 502 Error "},
		"an error page": {x: func(x *exchange.Exchange) { x.Status, x.Hidden = 503, errors.New("hidden") },
			want: "/ 503 Error hidden"},
		"a rejection": {err: &exchange.Failure{Status: 403}, want: "/ 403 Unset "},
	} {
		t.Run(name, func(t *testing.T) {
			to := &recorder{}
			tracer := newTracer(&ir.Collector{}, to, NewExports(zap.NewNop()))
			x := request("User-Agent: curl\xff")
			tracer.Begin(x, route(&c.of))
			if c.x != nil {
				c.x(x)
			}
			End(x, c.err)
			tracer.Flush()
			if x.Span != nil || len(to.exported()) != 1 {
				t.Fatalf("the span is %v, and %d are exported", x.Span, len(to.exported()))
			}
			attributes := map[string]string{}
			for _, a := range to.exported()[0].Attributes() {
				attributes[string(a.Key)] = a.Value.String()
			}
			status := to.exported()[0].Status()
			got := fmt.Sprint(to.exported()[0].Name(), " ", attributes["http.status_code"], " ", status.Code, " ",
				status.Description)
			if got != c.want {
				t.Errorf("the span is %q, want %q", got, c.want)
			}
			delete(attributes, "http.status_code")
			if diff := cmp.Diff(map[string]string{
				"http.method": "GET", "http.target": "/x?y=1", "http.route": "/", "http.flavor": "1.1",
				"http.host": "a.example", "http.server_name": "a.example", "http.scheme": "http",
				"http.user_agent": "curl\uFFFD", "net.host.port": "8080", "net.peer.ip": "192.0.2.9",
				"net.peer.port": "1234", "ingress.namespace": "a", "ingress.name": "web",
			}, attributes); diff != "" {
				t.Errorf("attributes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUntraced checks that requests without a tracer or settings have no span, and that a span is started only once.
func TestUntraced(t *testing.T) {
	if route(nil) != nil {
		t.Error("a route without settings is traced")
	}
	x := request(traced)
	(*Tracer)(nil).Begin(x, route(&ir.Tracing{}))
	End(x, nil)
	(*Tracer)(nil).Retire()
	(*Tracer)(nil).Flush()
	if got, _ := x.Fields.Joined(traceParent); x.Span != nil || "traceparent: "+got != traced {
		t.Errorf("the endpoint gets %q, and the span is %v", got, x.Span)
	}
	to := &recorder{}
	tracer := newTracer(&ir.Collector{}, to, NewExports(zap.NewNop()))
	tracer.Begin(x, route(&ir.Tracing{}))
	first := x.Span
	tracer.Begin(x, route(&ir.Tracing{}))
	if x.Span != first {
		t.Error("the request has a second span")
	}
	End(x, nil)
	tracer.Flush()
	tracer.Begin(x, route(&ir.Tracing{}))
	if x.Span != nil || len(to.exported()) != 1 {
		t.Errorf("after the end there is the span %v, and %d are exported", x.Span, len(to.exported()))
	}
}

// TestRetire checks that a replaced Tracer exports the spans that are open, and waits only for a while.
func TestRetire(t *testing.T) {
	for name, c := range map[string]struct {
		lasts time.Duration
		want  int
	}{
		"a request ends in time":   {lastSpans - time.Second, 1},
		"a request lasts too long": {lastSpans + time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &recorder{}
				tracer, x := newTracer(&ir.Collector{}, to, NewExports(zap.NewNop())), request()
				tracer.Begin(x, route(&ir.Tracing{}))
				tracer.Retire()
				<-time.After(c.lasts) // In a bubble this takes no time.
				End(x, nil)
				synctest.Wait()
				if len(to.exported()) != c.want {
					t.Errorf("%d spans are exported, want %d", len(to.exported()), c.want)
				}
			})
		})
	}
}

// TestSends checks which settings need another Tracer.
func TestSends(t *testing.T) {
	exports := NewExports(zap.NewNop())
	if New(&ir.Collector{Port: 4317}, exports) != nil {
		t.Error("there is a Tracer without a collector")
	}
	of := ir.Collector{Host: "192.0.2.1", Service: "edge"}
	tracer := New(&of, exports)
	t.Cleanup(tracer.Flush)
	for _, c := range []struct {
		tracer *Tracer
		of     ir.Collector
		want   bool
	}{
		{tracer, of, true}, {tracer, ir.Collector{Host: of.Host}, false}, {tracer, ir.Collector{}, false},
		{nil, ir.Collector{}, true}, {nil, ir.Collector{Service: "edge"}, true}, {nil, of, false},
	} {
		if got := c.tracer.Sends(&c.of); got != c.want {
			t.Errorf("%+v sends to %+v: %t", c.tracer, c.of, got)
		}
	}
}

// TestExports checks the counters, and that only the first failure and the next success are logged.
func TestExports(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	exports, to := NewExports(zap.New(core)), &recorder{}
	e := &exporter{to, exports}
	refused := errors.New("refused")
	for i, c := range []struct {
		err        error
		spans      int
		sent, lost float64
		log        string
	}{
		{nil, 2, 2, 0, ""},
		{refused, 3, 2, 3, "spans are lost, because the OpenTelemetry collector does not accept them"},
		{refused, 1, 2, 4, ""}, {nil, 1, 3, 4, "the OpenTelemetry collector accepts spans again"}, {nil, 1, 4, 4, ""},
	} {
		to.err = c.err
		if err := e.ExportSpans(t.Context(), make([]sdktrace.ReadOnlySpan, c.spans)); err != nil {
			t.Errorf("step %d: the SDK gets the error %v", i, err)
		}
		if sent, lost := value(t, exports.sent), value(t, exports.lost); sent != c.sent || lost != c.lost {
			t.Errorf("step %d: %v are sent and %v lost, want %v and %v", i, sent, lost, c.sent, c.lost)
		}
		log := ""
		for _, entry := range logs.TakeAll() {
			log += entry.Message
		}
		if log != c.log {
			t.Errorf("step %d: the log is %q, want %q", i, log, c.log)
		}
	}
}

// value returns the value of a counter.
func value(t *testing.T, counter prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := counter.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// TestBatches checks that spans are exported when a batch is complete, or after the delay.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &recorder{}
		tracer := newTracer(&ir.Collector{Batch: 3, Delay: time.Minute}, to, NewExports(zap.NewNop()))
		spans := func(n int) {
			for range n {
				x := request()
				tracer.Begin(x, route(&ir.Tracing{}))
				End(x, nil)
			}
		}
		for i, c := range []struct {
			spans  int
			passes time.Duration
			want   int
		}{
			{2, 0, 0}, {1, 0, 3}, {1, time.Minute - time.Nanosecond, 3}, {0, time.Nanosecond, 4},
		} {
			spans(c.spans)
			<-time.After(c.passes) // In a bubble this takes no time.
			synctest.Wait()
			if len(to.exported()) != c.want {
				t.Errorf("step %d: %d spans are exported, want %d", i, len(to.exported()), c.want)
			}
		}
		tracer.Flush()
	})
}
