package tracing

import (
	"errors"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// maxText is the maximum size, in bytes, of a span name or attribute value. It is limited because clients can choose
// most of these values.
const maxText = 1024

// maxState is the maximum size, in bytes, of a tracestate header. W3C Trace Context requires support for at least 512
// bytes.
const maxState = 512

// Route is a route whose requests are traced, with the template for the names of their spans. It is immutable.
type Route struct {
	*exchange.Route
	operation *nginx.Template
}

// NewRoute returns a Route, or nil if the requests of the route are not traced. If the operation name is missing or not
// a valid template, the spans are named after the path of the route.
func NewRoute(route *exchange.Route) *Route {
	if route.Tracing == nil {
		return nil
	}
	r := &Route{Route: route}
	if route.Tracing.Operation != "" {
		r.operation, _ = exchange.ParseTemplate(route.Tracing.Operation)
	}
	return r
}

// span is the type of Exchange.Span if a request is traced.
type span struct {
	trace.Span
	of *Tracer
	by *Route
}

// Begin starts the span of a request, and sets the trace context headers for the endpoint. If the request already has a
// span, because it had another route before, the span is named after the new route. The caller must call End later to
// end the span. t may be nil.
func (t *Tracer) Begin(x *exchange.Exchange, r *Route) {
	if s, ok := x.Span.(*span); ok {
		s.by = r
		s.SetName(text(r.Path))
		return
	}
	if t == nil || x.Span != nil || !t.acquire() {
		return
	}
	ctx, options := x.Context(), []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}
	if r.Tracing.Untrusted {
		options = append(options, trace.WithNewRoot())
	} else {
		ctx = propagation.TraceContext{}.Extract(ctx, carrier{&x.Fields})
	}
	ctx, own := t.Start(ctx, text(r.Path), options...)
	x.Fields.Remove(message.Other, traceParent)
	x.Fields.Remove(message.Other, traceState)
	propagation.TraceContext{}.Inject(ctx, carrier{&x.Fields})
	x.Span = &span{own, t, r}
}

// End ends the span of a request. err is nil, or the error of a failed request.
func End(x *exchange.Exchange, err error) {
	s, ok := x.Span.(*span)
	if !ok {
		return
	}
	if s.IsRecording() {
		if x.Route == nil {
			// The request was rejected before its route was set, but the attributes of the span need a route. Use the
			// route for which the span was started.
			x.Route = s.by.Route
		}
		s.describe(x, err)
	}
	s.Span.End()
	s.of.release()
	x.Span = nil
}

func (s *span) describe(x *exchange.Exchange, err error) {
	if s.by.operation != nil {
		s.SetName(text(s.by.operation.Expand(x.Variable)))
	}
	status := statusOf(x, err)
	all := append(make([]attribute.KeyValue, 0, 1+len(attributes)), attribute.Int("http.status_code", status))
	for i := range attributes {
		all = attributes[i].add(all, x)
	}
	s.SetAttributes(all...)
	if status < minFailure {
		return
	}
	if err == nil {
		err = x.Hidden
	}
	s.SetStatus(codes.Error, reason(err))
}

// minFailure is the lowest status for which a span is marked as failed.
const minFailure = 500

// statusOf returns the status of the response. If there is no response yet, it returns the status that the client will
// get for err.
func statusOf(x *exchange.Exchange, err error) int {
	switch {
	case x.Status != 0:
		return x.Status
	case err != nil && !errors.Is(err, exchange.ErrAborted):
		return exchange.StatusOf(err)
	}
	return exchange.ClientGone
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return text(err.Error())
}

// described is an attribute of a span: its name, the function that returns its value for a request, and whether the
// value is a number.
type described struct {
	name   string
	value  func(*exchange.Exchange) string
	number bool
}

// attributes lists the attributes of a span. Their names are the same as in nginx's OpenTelemetry module, or are based
// on variables of ingress-nginx.
var attributes = [...]described{
	{name: "http.method", value: exchange.VariableOf("request_method")},
	{name: "http.target", value: exchange.VariableOf("request_uri")},
	{name: "http.route", value: exchange.VariableOf("location_path")},
	{name: "http.flavor",
		value: func(x *exchange.Exchange) string { return strings.TrimPrefix(x.Protocol(), "HTTP/") }},
	{name: "http.host", value: exchange.VariableOf("http_host")},
	{name: "http.server_name", value: exchange.VariableOf("server_name")},
	{name: "http.scheme", value: exchange.VariableOf("scheme")},
	{name: "http.user_agent", value: func(x *exchange.Exchange) string { return x.Fields.Get(message.UserAgent) }},
	{name: "net.host.port", value: exchange.VariableOf("server_port"), number: true},
	{name: "net.peer.ip", value: exchange.VariableOf("remote_addr")},
	{name: "net.peer.port", value: exchange.VariableOf("remote_port"), number: true},
	{name: "ingress.namespace", value: exchange.VariableOf("namespace")},
	{name: "ingress.name", value: exchange.VariableOf("ingress_name")},
	{name: "ingress.service_name", value: exchange.VariableOf("service_name")},
}

// add appends the attribute for a request to a list, unless the value of the attribute is empty.
func (d *described) add(to []attribute.KeyValue, x *exchange.Exchange) []attribute.KeyValue {
	value := d.value(x)
	if value == "" {
		return to
	}
	if n, err := strconv.Atoi(value); d.number && err == nil {
		return append(to, attribute.Int(d.name, n))
	}
	return append(to, attribute.String(d.name, text(value)))
}

// The function text truncates a long string and replaces invalid UTF-8, because a collector would reject the whole
// batch that contains an invalid string.
func text(of string) string {
	if len(of) > maxText {
		of = of[:maxText]
	}
	return strings.Clone(strings.ToValidUTF8(of, "\uFFFD"))
}

// traceParent and traceState are the names of the W3C Trace Context headers.
const traceParent, traceState = "traceparent", "tracestate"

// carrier gives an OpenTelemetry propagator access to the header fields of a request.
type carrier struct{ fields *message.Fields }

// Get implements propagation.TextMapCarrier. If a request has two traceparent headers, Get joins them, and the
// propagator ignores the resulting invalid value. Get ignores values that are too long. It clones the value, because a
// span may keep it longer than the request, and the original string would keep the whole request head in memory.
func (c carrier) Get(name string) string {
	value, _ := c.fields.Joined(name)
	if len(value) > maxState {
		return ""
	}
	return strings.Clone(value)
}

// Set implements propagation.TextMapCarrier.
func (c carrier) Set(name, value string) { c.fields.Set(message.NewField(name, value)) }

// Keys implements propagation.TextMapCarrier.
func (c carrier) Keys() []string { return nil }
