package tracing

import (
	"errors"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/nginx"
)

// mostText is how many bytes a name or an attribute may have: clients say most of them.
const mostText = 1024

// mostState is how many bytes of state a trace may have: W3C Trace Context asks for 512.
const mostState = 512

// statusGone is the status that nginx notes where the client has left before its answer.
const statusGone = 499

// Route is how the requests of a route are traced. It is immutable.
type Route struct {
	route     *exchange.Route
	operation *nginx.Template
	untrusted bool
}

// NewRoute returns nil for a route whose requests are not traced. A name that cannot be read is the path of the route.
func NewRoute(of *ir.Tracing, route *exchange.Route) *Route {
	if of == nil {
		return nil
	}
	r := &Route{route: route, untrusted: of.Untrusted}
	if of.Operation != "" {
		r.operation, _ = nginx.ParseTemplate(of.Operation)
	}
	return r
}

// span is what an exchange has while it is traced.
type span struct {
	trace.Span
	of *Tracer
	by *Route
}

// Begin traces a request until End, and adds the trace to what its endpoint gets. t may be nil.
func (t *Tracer) Begin(x *exchange.Exchange, r *Route) {
	if t == nil || x.Span != nil || !t.acquire() {
		return
	}
	ctx, options := x.Context(), []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}
	if r.untrusted {
		options = append(options, trace.WithNewRoot())
	} else {
		ctx = propagation.TraceContext{}.Extract(ctx, carrier{&x.Fields})
	}
	ctx, own := t.Start(ctx, text(r.route.Path), options...)
	x.Fields.Remove(message.Other, traceParent)
	x.Fields.Remove(message.Other, traceState)
	propagation.TraceContext{}.Inject(ctx, carrier{&x.Fields})
	x.Span = &span{own, t, r}
}

// End says that a request has been answered, or that it has failed, which err says then.
func End(x *exchange.Exchange, err error) {
	s, ok := x.Span.(*span)
	if !ok {
		return
	}
	if s.IsRecording() {
		if x.Route == nil {
			// It was refused before its route was asked.
			x.Route = s.by.route
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
	if status < leastFailure {
		return
	}
	if err == nil {
		err = x.Hidden
	}
	s.SetStatus(codes.Error, reason(err))
}

// leastFailure is the least status that is a failure of ours, and not of the client.
const leastFailure = 500

// statusOf is what the client has got, or is about to get from whoever the error goes to.
func statusOf(x *exchange.Exchange, err error) int {
	switch {
	case x.Status != 0:
		return x.Status
	case err != nil && !errors.Is(err, exchange.ErrCut):
		return exchange.StatusOf(err)
	}
	return statusGone
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return text(err.Error())
}

// described is an attribute of a span.
type described struct {
	name   string
	value  func(*exchange.Exchange) string
	number bool
}

// attributes have the names that they have in nginx's module of OpenTelemetry, and those of ingress-nginx's variables.
var attributes = [...]described{
	{name: "http.method", value: exchange.VariableOf("request_method")},
	{name: "http.target", value: exchange.VariableOf("request_uri")},
	{name: "http.route", value: exchange.VariableOf("location_path")},
	{name: "http.flavor", value: func(x *exchange.Exchange) string { return strings.TrimPrefix(x.Protocol(), "HTTP/") }},
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

// add leaves out what is empty.
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

// text cuts off what is too long, and replaces what is no text: a collector would refuse a batch with one such span in it.
func text(of string) string {
	if len(of) > mostText {
		of = of[:mostText]
	}
	return strings.Clone(strings.ToValidUTF8(of, "\uFFFD"))
}

// traceParent and traceState are the fields of W3C Trace Context.
const traceParent, traceState = "traceparent", "tracestate"

// carrier is the fields of a request, as the propagator takes them.
type carrier struct{ fields *message.Fields }

// Get implements propagation.TextMapCarrier. A request with two parents has none, and one with a long state has no state. A span keeps the
// value, which must not keep the head of the request.
func (c carrier) Get(name string) string {
	value, _ := c.fields.Joined(name)
	if len(value) > mostState {
		return ""
	}
	return strings.Clone(value)
}

// Set implements propagation.TextMapCarrier.
func (c carrier) Set(name, value string) { c.fields.Set(message.NewField(name, value)) }

// Keys implements propagation.TextMapCarrier.
func (c carrier) Keys() []string { return nil }
