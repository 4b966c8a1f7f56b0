package exchange

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/mtls"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// values maps the names of nginx variables to functions that return their values. It does not contain variables whose
// names begin with a prefix such as http_; see families.
var values = map[string]func(*Exchange) string{
	"args":                      query,
	"best_http_host":            func(x *Exchange) string { return x.Client().Host },
	"binary_remote_addr":        binaryAddress,
	"content_length":            contentLength,
	"content_type":              func(x *Exchange) string { return x.Fields.Get(message.ContentType) },
	"document_uri":              uri,
	"escaped_request_uri":       func(x *Exchange) string { return nginx.EscapeComponent(x.Target) },
	"host":                      requestHost,
	"http_host":                 func(x *Exchange) string { return x.Host },
	"http2":                     http2,
	"https":                     https,
	"ingress_name":              func(x *Exchange) string { return x.route().object().Name },
	"is_args":                   isArgs,
	"location_path":             func(x *Exchange) string { return x.route().Path },
	"msec":                      msec,
	"namespace":                 func(x *Exchange) string { return x.route().object().Namespace },
	"pass_access_scheme":        func(x *Exchange) string { return x.Client().Proto },
	"proxy_add_x_forwarded_for": addedForwardedFor,
	"proxy_upstream_name":       upstreamName,
	"query_string":              query,
	"realip_remote_addr":        connectedAddress,
	"realip_remote_port":        remotePort,
	"remote_addr":               (*Exchange).ClientIP,
	"remote_port":               remotePort,
	"remote_user":               remoteUser,
	"req_id":                    (*Exchange).ID,
	"request":                   requestLine,
	"request_id":                (*Exchange).ID,
	"request_length":            requestLength,
	"request_method":            func(x *Exchange) string { return x.Method },
	"request_uri":               requestURI,
	"scheme":                    (*Exchange).Scheme,
	"server_addr":               serverAddress,
	"server_name":               func(x *Exchange) string { return cmp.Or(x.route().Host, "_") },
	"server_port":               serverPort,
	"server_protocol":           func(x *Exchange) string { return x.Protocol() },
	"service_name":              func(x *Exchange) string { return x.service(1) },
	"service_port":              func(x *Exchange) string { return x.service(2) },
	"ssl_cipher":                ofTLS(tlsCipher),
	"ssl_client_escaped_cert":   ofPeer((*mtls.Client).Escaped),
	"ssl_client_i_dn":           ofPeer(func(c *mtls.Client) string { return c.Issuer }),
	"ssl_client_s_dn":           ofPeer(func(c *mtls.Client) string { return c.Subject }),
	"ssl_client_verify":         ofPeer(func(c *mtls.Client) string { return c.Verify }),
	"ssl_protocol":              ofTLS(tlsVersion),
	"ssl_server_name":           ofTLS(func(s *tls.ConnectionState) string { return s.ServerName }),
	"status":                    responseStatusOf,
	"the_real_ip":               (*Exchange).ClientIP,
	"upstream_addr":             upstreamAddress,
	"upstream_status":           upstreamStatus,
	"uri":                       uri,

	"opentelemetry_context_traceparent": traceParent,
	"opentelemetry_span_id":             ofSpan(func(c trace.SpanContext) string { return c.SpanID().String() }),
	"opentelemetry_trace_id":            ofSpan(func(c trace.SpanContext) string { return c.TraceID().String() }),
}

// families are the groups of variables whose names consist of a prefix and the name of a header, cookie or query
// argument. ofResponse is true for variables that describe the response.
var families = []struct {
	prefix     string
	value      func(x *Exchange, name string) string
	ofResponse bool
}{
	{"http_", func(x *Exchange, name string) string { return x.Fields.Variable(name) }, false},
	{"cookie_", func(x *Exchange, name string) string { return x.CookieLikeNginx(name) }, false},
	{"arg_", (*Exchange).argument, false},
	{"sent_http_", (*Exchange).sentHeader, true},
	{"upstream_http_", (*Exchange).upstreamHeader, true},
	{"upstream_cookie_", (*Exchange).upstreamCookie, true},
}

// Variable returns the value of an nginx variable, a variable that a program has set, a capture group, or a variable in
// Variables. It returns an empty string if the variable is unknown or has no value for this request.
func (x *Exchange) Variable(name string) string {
	if value, ok := values[name]; ok {
		return value(x)
	}
	if value, rest := familyOf(name); value != nil {
		return value(x, rest)
	}
	if value, ok := x.scripted.value(name); ok {
		return value
	}
	return x.definedVariable(name)
}

// Reader returns a function that returns the value of a variable, as Variable does. It finds nginx's variables once,
// and not for each request.
func Reader(name string) func(*Exchange) string {
	if value := VariableOf(name); value != nil {
		return value
	}
	return func(x *Exchange) string { return x.Variable(name) }
}

// familyOf returns the function that returns the values of a family of variables, and the part of the name behind the
// prefix of the family. The function is nil if the variable belongs to no family.
func familyOf(name string) (value func(x *Exchange, name string) string, rest string) {
	for i := range families {
		if rest, ok := strings.CutPrefix(name, families[i].prefix); ok && rest != "" {
			return families[i].value, rest
		}
	}
	return nil, ""
}

// OfResponse reports whether a variable describes the response, so that it only has a value when the head of the
// response is written. Only the directives of programs are applied then, and only they use such variables.
func OfResponse(name string) bool {
	switch name {
	case "status", "upstream_addr", "upstream_status":
		return true
	}
	for _, family := range families {
		if family.ofResponse && strings.HasPrefix(name, family.prefix) {
			return true
		}
	}
	return false
}

// CheckSettable returns an error if a program cannot set the variable with this name.
func CheckSettable(name string) error {
	if name != argsVariable && VariableOf(name) != nil || !nginx.IsVariable(name) {
		return fmt.Errorf("a program cannot set the variable $%s", name)
	}
	return nil
}

// VariableNames returns the sorted names of all nginx variables, except variables with a prefix
// such as http_.
func VariableNames() []string { return slices.Sorted(maps.Keys(values)) }

// VariableOf returns the function that computes a variable's value, or nil if the variable is unknown.
func VariableOf(name string) func(*Exchange) string {
	if value, ok := values[name]; ok {
		return value
	}
	value, rest := familyOf(name)
	if value == nil {
		return nil
	}
	return func(x *Exchange) string { return value(x, rest) }
}

// ParseTemplate parses text with variables of the form $name or ${name}, as nginx.ParseTemplate does. It returns an
// error for a variable for which OfResponse returns true, and for a capture group. The parameter more lists exceptions.
// Unknown variables are allowed, because Exchange.Variables may define them when a request uses the template.
func ParseTemplate(text string, more ...string) (*nginx.Template, error) {
	return nginx.ParseTemplate(text, func(name string) bool {
		return !OfResponse(name) && !slices.Contains(nginx.Groups, name) || slices.Contains(more, name)
	})
}

var noRoute Route

// route returns the route of the request, or the route that it matches. Without a route, it returns an empty Route
// instead of nil.
func (x *Exchange) route() *Route { return cmp.Or(x.Route, x.Matched, &noRoute) }

func (r *Route) object() ir.Ref { return ir.ParseRef(r.Origin) }

func query(x *Exchange) string { return x.Query }

func uri(x *Exchange) string { return message.CleanPath(x.Path) }

func isArgs(x *Exchange) string {
	if x.Query == "" {
		return ""
	}
	return "?"
}

func requestHost(x *Exchange) string { return cmp.Or(message.Hostname(x.Host), x.route().Host) }

// Scheme returns "https" if the client's connection uses TLS, and "http" otherwise. It ignores X-Forwarded-Proto.
func (x *Exchange) Scheme() string {
	if x.TLS() != nil {
		return "https"
	}
	return "http"
}

func https(x *Exchange) string {
	if x.TLS() == nil {
		return ""
	}
	return "on"
}

// msec returns the current Unix time in seconds, with milliseconds as decimals.
func msec(*Exchange) string {
	now := time.Now().UnixMilli()
	return fmt.Sprintf("%d.%03d", now/1000, now%1000)
}

// addedForwardedFor returns the client's X-Forwarded-For header with the client's own address appended.
func addedForwardedFor(x *Exchange) string {
	if before := x.Fields.JoinedKind(message.XForwardedFor); before != "" {
		return before + ", " + x.ClientIP()
	}
	return x.ClientIP()
}

// requestURI returns the request target as the client sent it, before any rewrite.
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

func serverAddress(x *Exchange) string {
	if !x.Conn.Local.IsValid() {
		return ""
	}
	return x.Conn.Local.Addr().Unmap().String()
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

// service returns one element of the backend's ID. part is as in backendPart.
func (x *Exchange) service(part int) string { return backendPart(x.Backend, part) }

// backendPart returns one element of the ID of a backend, which has the form "namespace/service/port". part is the
// index of the element: 0 for the namespace, 1 for the service, 2 for the port. It returns an empty string if b is nil.
func backendPart(b *balancer.Backend, part int) string {
	if b == nil {
		return ""
	}
	id := b.ID()
	for range part {
		_, id, _ = strings.Cut(id, "/")
	}
	id, _, _ = strings.Cut(id, "/")
	return id
}

// argument returns the value of a query argument without decoding it. The case of the argument name is ignored.
func (x *Exchange) argument(name string) string {
	// Look for the next "=" first: a client may send tens of thousands of "&", and a program may read many arguments.
	for rest := x.Query; rest != ""; {
		before, after, found := strings.Cut(rest, "=")
		if !found {
			break
		}
		key := before[strings.LastIndexByte(before, '&')+1:]
		var value string
		value, rest, _ = strings.Cut(after, "&")
		if len(key) == len(name) && strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

// ofPeer returns the function for a variable that describes the client certificate. The variable is empty if the host
// does not request client certificates.
func ofPeer(value func(*mtls.Client) string) func(*Exchange) string {
	return func(x *Exchange) string {
		if x.Peer == nil {
			return ""
		}
		return value(x.Peer)
	}
}

// ofSpan returns the function for a variable that describes the span of the request. The variable is empty if the
// request is not traced.
func ofSpan(value func(trace.SpanContext) string) func(*Exchange) string {
	return func(x *Exchange) string {
		if x.Span == nil {
			return ""
		}
		return value(x.Span.SpanContext())
	}
}

// traceParent returns the traceparent header that is sent to the endpoint. It is empty if the request is not traced.
func traceParent(x *Exchange) string {
	if x.Span == nil {
		return ""
	}
	value, _ := x.Fields.Joined("traceparent")
	return value
}
