package featuretests

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// spans is an OpenTelemetry collector.
type spans struct {
	collector.UnimplementedTraceServiceServer
	host, port string

	mu      sync.Mutex
	all     []exportedSpan
	refuses bool
	// batches has the spans of each batch.
	batches [][]exportedSpan
	// held is not nil while the collector accepts nothing.
	held chan struct{}
}

// exportedSpan is a received span, with its attributes as text, and the service name.
type exportedSpan struct {
	*tracepb.Span
	service    string
	attributes map[string]string
}

func newSpans(t *testing.T) *spans {
	t.Helper()
	s := &spans{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.host, s.port = hostPort(t, listener.Addr())
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, s)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return s
}

// Export implements the OTLP service.
func (s *spans) Export(_ context.Context,
	r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	if held := s.held; held != nil {
		s.mu.Unlock()
		<-held
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if s.refuses {
		return nil, grpcstatus.Error(codes.InvalidArgument, "not these")
	}
	before := len(s.all)
	defer func() { s.batches = append(s.batches, s.all[before:]) }()
	for _, of := range r.ResourceSpans {
		service := ""
		for _, a := range of.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, scope := range of.ScopeSpans {
			for _, span := range scope.Spans {
				each := exportedSpan{span, service, map[string]string{}}
				for _, a := range span.Attributes {
					text := a.Value.GetStringValue()
					if text == "" {
						text = fmt.Sprint(a.Value.GetIntValue())
					}
					each.attributes[a.Key] = text
				}
				s.all = append(s.all, each)
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// keys returns the keys of a ConfigMap that exports spans to the collector at once.
func (s *spans) keys(more ...string) string {
	return global(append(more, "otlp-collector-host: "+s.host, fmt.Sprintf("otlp-collector-port: %q", s.port),
		`otel-schedule-delay-millis: "1"`)...)
}

// of waits for the only span of a request for the target.
func (s *spans) of(in *ingress, target string) (found exportedSpan) {
	in.Helper()
	in.eventually("a span of "+target, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		n := 0
		for _, span := range s.all {
			if span.attributes["http.target"] == target {
				found = span
				n++
			}
		}
		if n != 1 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	return found
}

// traced serves a.example with an endpoint that responds with its trace header, at once except for /waits.
func traced(t *testing.T, waits <-chan struct{}) (objects string) {
	t.Helper()
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/waits" {
			<-waits
		}
		if strings.HasPrefix(r.URL.Path, "/fails") {
			w.WriteHeader(http.StatusBadGateway)
		}
		fmt.Fprint(w, strings.Join(r.Header["Traceparent"], "+"), " ", strings.Join(r.Header["Tracestate"], "+"))
	})
	return class + service("one", port, ip) + rule("a", "a.example", "Prefix", "/", "one") +
		annotated("own", "own.example", "one", "opentelemetry-trust-incoming-span", "false",
			"opentelemetry-operation-name",
			"$request_method $service_name $http_x_of") +
		annotated("quiet", "quiet.example", "one", "enable-opentelemetry", "false")
}

const (
	trace  = "0af7651916cd43dd8448eb211c80319c"
	parent = "b7ad6b7169203331"
)

// TestTracing checks that the collector gets a span with the attributes of each request, in each version of HTTP. The
// span belongs to the client's trace, unless that is not trusted, and the trace is propagated to the endpoint.
func TestTracing(t *testing.T) {
	collector := newSpans(t)
	in := start(t, traced(t, nil)+collector.keys(`enable-opentelemetry: "true"`, "otel-service-name: edge"),
		"configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		span, body := collector.ask(in, "a.example", "/x", "Traceparent: 00-"+trace+"-"+parent+"-01", "Tracestate: a=b",
			"User-Agent: \xffx")
		if hex.EncodeToString(span.TraceId) != trace || hex.EncodeToString(span.ParentSpanId) != parent {
			t.Errorf("the span is of %x by %x", span.TraceId, span.ParentSpanId)
		}
		if want := fmt.Sprintf("00-%s-%x-01 a=b", trace, span.SpanId); body != want {
			t.Errorf("the endpoint is told %q, want %q", body, want)
		}
		for name, want := range map[string]string{
			"http.method": "GET", "http.status_code": "200", "http.host": "a.example", "http.route": "/",
			"net.peer.ip":     "127.0.0.1",
			"http.user_agent": "\uFFFDx", "ingress.namespace": "default", "ingress.name": "a",
			"ingress.service_name": "one",
		} {
			if got := span.attributes[name]; got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if span.Kind != tracepb.Span_SPAN_KIND_SERVER || span.Name != "/" || span.service != "edge" ||
			span.EndTimeUnixNano < span.StartTimeUnixNano {
			t.Errorf("the span is %v of %s", span.Span, span.service)
		}
		partOfNone(t, collector, in)
		span, _ = collector.ask(in, "a.example", "/fails")
		if span.attributes["http.status_code"] != "502" || span.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR {
			t.Errorf("a failure is %v", span.Span)
		}
	})
	collector.mu.Lock()
	defer collector.mu.Unlock()
	for _, span := range collector.all {
		if span.attributes["http.host"] == "quiet.example" {
			t.Errorf("there is a span of an Ingress that wants none: %v", span.Span)
		}
	}
}

// partOfNone checks that an untrusted client's trace is ignored, and that it is forwarded where tracing is off.
func partOfNone(t *testing.T, collector *spans, in *ingress) {
	t.Helper()
	span, body := collector.ask(in, "own.example", "/y", "Traceparent: 00-"+trace+"-"+parent+"-01",
		"Tracestate: a=b", "X-Of: here")
	if hex.EncodeToString(span.TraceId) == trace || len(span.ParentSpanId) > 0 || span.Name != "GET one here" {
		t.Errorf("the span %q is of %x by %x, and was not to trust the client", span.Name, span.TraceId,
			span.ParentSpanId)
	}
	if want := fmt.Sprintf("00-%x-%x-01 ", span.TraceId, span.SpanId); body != want {
		t.Errorf("the endpoint is told %q, want %q", body, want)
	}
	got := in.sendBy(in.client, in.origin("quiet.example"), "GET", nil, "Traceparent: 00-"+trace+"-"+parent+"-01")
	if want := "00-" + trace + "-" + parent + "-01 "; got.body != want {
		t.Errorf("without tracing, the endpoint is told %q, want %q", got.body, want)
	}
}

// ask sends a request, and returns its span and the response body.
func (s *spans) ask(in *ingress, host, path string, headers ...string) (exportedSpan, string) {
	in.Helper()
	target := path + "?by=" + strings.ReplaceAll(in.Name(), "/", "-")
	got := in.sendBy(in.client, in.origin(host)+target, "GET", nil, headers...)
	return s.of(in, target), got.body
}

// TestTracingOfRefusals checks that a response without an endpoint has a span, too.
func TestTracingOfRefusals(t *testing.T) {
	collector := newSpans(t)
	in := start(t, traced(t, nil)+annotated("closed", "closed.example", "one", "allowlist-source-range", "192.0.2.1")+
		annotated("moved", "moved.example", "one", "force-ssl-redirect", "true")+
		annotated("gone", "gone.example", "none")+collector.keys(`enable-opentelemetry: "true"`),
		"configmap default/global")
	for host, want := range map[string]string{"closed.example": "403", "moved.example": "308", "gone.example": "503"} {
		in.get(host, "/"+host)
		if got := collector.of(in, "/"+host); got.attributes["http.status_code"] != want ||
			got.attributes["ingress.namespace"] != "default" {
			t.Errorf("%s has %v, want the status %s", host, got.attributes, want)
		}
	}
}

// TestTracingChanges checks that the keys take effect without a reload, that a single Ingress may enable spans, and
// that no request waits for a collector that is down or does not read.
func TestTracingChanges(t *testing.T) {
	first, second := newSpans(t), newSpans(t)
	waits := make(chan struct{})
	objects := traced(t, waits)
	in := start(t, objects+global(`enable-opentelemetry: "true"`), "configmap default/global")
	in.awaitVerdict("ConfigMap/default/global", "InvalidEntry", "otlp-collector-host")
	in.expect("a.example", "/none", http.StatusOK, " ")
	sends := func(s *spans, host string) {
		t.Helper()
		n := 0
		in.eventually("a span at another collector", func() error {
			n++
			target := fmt.Sprintf("/of-%s-%d", s.port, n)
			in.get(host, target)
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.all) == 0 {
				return errors.New("there is none")
			}
			return nil
		})
	}
	in.write("manifests.yaml", objects+first.keys(`enable-opentelemetry: "true"`))
	sends(first, "a.example")
	var last answer
	slow := make(chan struct{})
	go func() {
		defer close(slow)
		last = in.get("a.example", "/waits")
	}()
	in.write("manifests.yaml", objects+annotated("asks", "asks.example", "one", "enable-opentelemetry", "true")+
		second.keys())
	sends(second, "asks.example")
	close(waits)
	<-slow
	first.of(in, "/waits")
	if last.status != http.StatusOK {
		t.Errorf("the request under way gets %d", last.status)
	}
	in.eventually("the others without a trace", func() error { return in.check("a.example", "/", http.StatusOK, " ") })
	in.write("manifests.yaml", objects+second.keys(`enable-opentelemetry: "true"`, "otel-sampler: AlwaysOff"))
	in.eventually("no sampling", func() error {
		if got := in.get("a.example", "/").body; !strings.HasSuffix(got, "-00 ") {
			return fmt.Errorf("the endpoint is told %q", got)
		}
		return nil
	})
	second.mu.Lock()
	second.all = nil
	second.mu.Unlock()
	in.sendBy(in.client, in.origin("a.example")+"/unsampled", "GET", nil)
	in.sendBy(in.client, in.origin("a.example")+"/sampled", "GET", nil, "Traceparent: 00-"+trace+"-"+parent+"-01")
	second.of(in, "/sampled")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := &spans{}
	nobody.host, nobody.port = hostPort(t, closed.Addr())
	closed.Close()
	in.write("manifests.yaml", objects+nobody.keys(`enable-opentelemetry: "true"`))
	in.eventually("sampling", func() error {
		if got := in.get("a.example", "/").body; !strings.HasSuffix(got, "-01 ") {
			return fmt.Errorf("the endpoint is told %q", got)
		}
		return nil
	})
	first.mu.Lock()
	first.refuses = true
	first.mu.Unlock()
	in.write("manifests.yaml", objects+first.keys(`enable-opentelemetry: "true"`))
	in.eventually("lost spans", func() error {
		in.get("a.example", "/")
		if text := in.metrics(); !strings.Contains(text, `k8singress_trace_spans_total{result="lost"} `) ||
			strings.Contains(text, `k8singress_trace_spans_total{result="lost"} 0`+"\n") {
			return errors.New("none are counted")
		}
		return nil
	})
	second.mu.Lock()
	defer second.mu.Unlock()
	for _, span := range second.all {
		if span.attributes["http.target"] == "/unsampled" {
			t.Error("there is a span of a request that the sampler leaves out")
		}
	}
}
