package streams

import (
	"fmt"
	"strconv"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/report"
)

const (
	mostConnections = 1_000_000
	mostResponses   = 1_000_000
)

// The annotations for connections.
var (
	streamIdleTimeout = Annotation{
		Name: prefix + "stream-idle-timeout",
		Doc: "For how long nothing may move in either direction before a connection, or the session of a UDP " +
			"client, is ended.",
		Values: "a time such as 90s or 10m", Example: "1h",
		Default: "what proxy-stream-timeout says: 600s for TCP, and 60s for UDP",
		Parse:   nginx.Into(func(s *Settings) *time.Duration { return &s.Policy.IdleTimeout }, nginx.Timeout),
	}
	streamConnectTimeout = Annotation{
		Name:   prefix + "stream-connect-timeout",
		Doc:    "How long an endpoint may take to accept a connection, before another one is tried.",
		Values: "a time such as 2s", Example: "2s", Default: "5s",
		Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.Policy.ConnectTimeout }, nginx.Timeout),
	}
	streamMaxConnections = Annotation{
		Name:   prefix + "stream-max-connections",
		Doc:    "How many connections, or clients of UDP, a port has at once. More are refused.",
		Values: fmt.Sprintf("a number from 1 to %d", mostConnections), Example: "500", Default: "no limit for TCP",
		Parse: nginx.Into(func(s *Settings) *int { return &s.Policy.MaxConnections }, nginx.Number(1, mostConnections)),
	}
	streamResponses = Annotation{
		Name: prefix + "stream-responses",
		Doc: "After how many responses to each of its datagrams the session of a UDP client ends. 1 is for " +
			"protocols with one request and one response, such as DNS. 0 ends it when it is idle.",
		Values: fmt.Sprintf("a number from 0 to %d", mostResponses), Example: "1",
		Default: "what proxy-stream-responses says: 0",
		Parse:   nginx.Into(func(s *Settings) *int { return &s.Policy.Responses }, nginx.Number(0, mostResponses)),
	}
)

// cap reduces the Service's settings to the maximum in o.Most, and returns the resulting warnings. Values from the
// ConfigMap may be larger.
func (s *Settings) cap(o *Options) (problems []report.Problem) {
	warn := func(row *Annotation, asked, most, option string) {
		problems = append(problems, report.Problem{
			Severity: report.Warning, Reason: report.QuotaExceeded, Field: report.AnnotationField(row.Name),
			Message: fmt.Sprintf(
				"%s is more than a Service may ask for here, and %s counts: the administrator can raise %s", asked,
				most, option),
		})
	}
	if asked, most := s.Policy.MaxConnections, o.Most.MaxConnections; most > 0 && asked > most &&
		asked != o.Policy.MaxConnections {
		s.Policy.MaxConnections = most
		warn(&streamMaxConnections, strconv.Itoa(asked), strconv.Itoa(most), "service_max_connections")
	}
	if asked, most := s.Policy.IdleTimeout, o.Most.IdleTimeout; most > 0 && asked > most &&
		asked != o.Policy.IdleTimeout {
		s.Policy.IdleTimeout = most
		warn(&streamIdleTimeout, asked.String(), most.String(), "service_max_idle_timeout")
	}
	return problems
}

const booleans = "true or false"

// The annotations for the PROXY protocol, which apply to TCP only.
var (
	streamAcceptProxy = Annotation{
		Name: prefix + "stream-accept-proxy",
		Doc: "Clients send a PROXY protocol header, of version 1 or 2, with their address. A connection without one " +
			"is closed. The flag in the ConfigMap says the same.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(s *Settings) *bool { return &s.AcceptProxy }, nginx.Bool), OnError: (*Settings).close,
		Meanwhile: staysClosed,
	}
	streamTrustedProxies = Annotation{
		Name: prefix + "stream-trusted-proxies",
		Doc: "The networks of the proxies that may send the header of stream-accept-proxy. Connections from " +
			"elsewhere are closed; all are, if none of the networks can be read.",
		Values: "networks and addresses, with commas between them", Example: "10.0.0.0/8,fd00::/8",
		Default: "all addresses",
		Parse:   nginx.Into(func(s *Settings) *[]string { return &s.Trusted }, nginx.Networks),
		OnError: (*Settings).close, Meanwhile: staysClosed,
	}
	streamProxyProtocol = Annotation{
		Name: prefix + "stream-proxy-protocol",
		Doc: "The endpoints get a PROXY protocol header of this version first, with the address of the client. The " +
			"flag in the ConfigMap asks for v1.",
		Values: "v1 or v2", Example: "v2", Default: "no header",
		Parse: nginx.Into(func(s *Settings) *ir.ProxyVersion { return &s.SendProxy },
			func(value string) (ir.ProxyVersion, error) {
				version, err := nginx.OneOf(string(ir.ProxyV1), string(ir.ProxyV2))(value)
				return ir.ProxyVersion(version), err
			}),
		OnError: (*Settings).close, Meanwhile: staysClosed,
	}
)
