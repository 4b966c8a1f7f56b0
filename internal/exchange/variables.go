package exchange

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/mtls"
	"github.com/k8singress/k8singress/internal/nginx"
)

// values tells the nginx variables by name. Those with http_, cookie_ and arg_ in front come from families.
var values = map[string]func(*Exchange) string{
	"args":                      query,
	"best_http_host":            func(x *Exchange) string { return x.Client().Host },
	"binary_remote_addr":        binaryAddress,
	"escaped_request_uri":       func(x *Exchange) string { return nginx.EscapeComponent(x.Target) },
	"host":                      requestHost,
	"http_host":                 func(x *Exchange) string { return x.Host },
	"ingress_name":              func(x *Exchange) string { return x.route().object().Name },
	"is_args":                   isArgs,
	"location_path":             func(x *Exchange) string { return x.route().Path },
	"msec":                      msec,
	"namespace":                 func(x *Exchange) string { return x.route().object().Namespace },
	"pass_access_scheme":        func(x *Exchange) string { return x.Client().Proto },
	"proxy_add_x_forwarded_for": addedForwardedFor,
	"query_string":              query,
	"remote_addr":               (*Exchange).ClientIP,
	"remote_port":               remotePort,
	"req_id":                    (*Exchange).ID,
	"request_id":                (*Exchange).ID,
	"request_method":            func(x *Exchange) string { return x.Method },
	"request_uri":               requestURI,
	"scheme":                    (*Exchange).Scheme,
	"server_name":               func(x *Exchange) string { return cmp.Or(x.route().Host, "_") },
	"server_port":               serverPort,
	"service_name":              func(x *Exchange) string { return x.service(1) },
	"service_port":              func(x *Exchange) string { return x.service(2) },
	"ssl_client_escaped_cert":   ofPeer((*mtls.Client).Escaped),
	"ssl_client_i_dn":           ofPeer(func(c *mtls.Client) string { return c.Issuer }),
	"ssl_client_s_dn":           ofPeer(func(c *mtls.Client) string { return c.Subject }),
	"ssl_client_verify":         ofPeer(func(c *mtls.Client) string { return c.Verify }),
	"the_real_ip":               (*Exchange).ClientIP,
	"uri":                       func(x *Exchange) string { return message.CleanPath(x.Path) },

	"opentelemetry_context_traceparent": traceParent,
	"opentelemetry_span_id":             ofSpan(func(c trace.SpanContext) string { return c.SpanID().String() }),
	"opentelemetry_trace_id":            ofSpan(func(c trace.SpanContext) string { return c.TraceID().String() }),
}

// families are variables whose name ends with that of a part of the request.
var families = []struct {
	prefix string
	value  func(x *Exchange, name string) string
}{
	{"http_", (*Exchange).header},
	{"cookie_", (*Exchange).anyCookie},
	{"arg_", (*Exchange).argument},
}

// Variable returns the value of an nginx variable. What the request does not have is empty.
func (x *Exchange) Variable(name string) string {
	if value := VariableOf(name); value != nil {
		return value(x)
	}
	return ""
}

// VariableOf returns what knows the values of a variable, or nil for one that there is not.
func VariableOf(name string) func(*Exchange) string {
	if value, ok := values[name]; ok {
		return value
	}
	for _, family := range families {
		if rest, ok := strings.CutPrefix(name, family.prefix); ok && rest != "" {
			return func(x *Exchange) string { return family.value(x, rest) }
		}
	}
	return nil
}

var noRoute Route

// route is that of the request, or one that says nothing.
func (x *Exchange) route() *Route {
	if x.Route == nil {
		return &noRoute
	}
	return x.Route
}

func (r *Route) object() ir.Ref { return ir.ParseRef(r.Origin) }

func query(x *Exchange) string { return x.Query }

func isArgs(x *Exchange) string {
	if x.Query == "" {
		return ""
	}
	return "?"
}

func requestHost(x *Exchange) string { return cmp.Or(message.Hostname(x.Host), x.route().Host) }

// Scheme is https for a connection with TLS, whatever a proxy in front has said, and http for others.
func (x *Exchange) Scheme() string {
	if x.TLS() != nil {
		return "https"
	}
	return "http"
}

// msec is the time in seconds, to the millisecond.
func msec(*Exchange) string {
	now := time.Now().UnixMilli()
	return fmt.Sprintf("%d.%03d", now/1000, now%1000)
}

// addedForwardedFor is what the client has sent, and its address behind that.
func addedForwardedFor(x *Exchange) string {
	if before := x.Fields.JoinedKind(message.XForwardedFor); before != "" {
		return before + ", " + x.ClientIP()
	}
	return x.ClientIP()
}

// requestURI is what the client sent, whatever was made of it since.
func requestURI(x *Exchange) string { return x.Target }

func binaryAddress(x *Exchange) string {
	address, err := netip.ParseAddr(x.ClientIP())
	if err != nil {
		return ""
	}
	return string(address.Unmap().AsSlice())
}

func remotePort(x *Exchange) string {
	if !x.Conn.Remote.IsValid() {
		return ""
	}
	return strconv.Itoa(int(x.Conn.Remote.Port()))
}

func serverPort(x *Exchange) string {
	switch {
	case x.Conn.LocalPort != "":
		return x.Conn.LocalPort
	case x.TLS() != nil:
		return "443"
	}
	return "80"
}

// service returns a part of the ID of the backend: "namespace/service/port".
func (x *Exchange) service(part int) string {
	if x.Backend == nil {
		return ""
	}
	parts := strings.Split(x.Backend.ID(), "/")
	if part >= len(parts) {
		return ""
	}
	return parts[part]
}

// header returns a header by nginx's name for it, in lower case and with underscores.
func (x *Exchange) header(name string) string {
	value, _ := x.Fields.Joined(strings.ReplaceAll(name, "_", "-"))
	return value
}

// anyCookie returns a cookie whose name may be in another case.
func (x *Exchange) anyCookie(name string) string {
	value, _ := x.CookieFold(name)
	return value
}

// argument returns an argument of the query as it was sent. Its name may be in another case.
func (x *Exchange) argument(name string) string {
	for pair := range strings.SplitSeq(x.Query, "&") {
		if key, value, ok := strings.Cut(pair, "="); ok && strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

// ofPeer makes a variable of what is known of a client with a certificate.
func ofPeer(value func(*mtls.Client) string) func(*Exchange) string {
	return func(x *Exchange) string {
		if x.Peer == nil {
			return ""
		}
		return value(x.Peer)
	}
}

// ofSpan makes a variable of the span of a request that is traced.
func ofSpan(value func(trace.SpanContext) string) func(*Exchange) string {
	return func(x *Exchange) string {
		if x.Span == nil {
			return ""
		}
		return value(x.Span.SpanContext())
	}
}

// traceParent is what the endpoint of a request that is traced gets in the field of this name.
func traceParent(x *Exchange) string {
	if x.Span == nil {
		return ""
	}
	value, _ := x.Fields.Joined("traceparent")
	return value
}
