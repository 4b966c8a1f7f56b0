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
	maxConnections = 1_000_000
	maxResponses   = 1_000_000
)

// The annotations that limit connections, and configure timeouts.
var (
	streamIdleTimeout = Annotation{
		Name: prefix + "stream-idle-timeout",
		Doc: "The idle timeout of connections to TCP ports, and of sessions of UDP clients. A connection or session " +
			"ends if no data is sent in either direction for this time.",
		Values: "a time such as 90s or 10m", Example: "1h",
		Default: "the value of proxy-stream-timeout in the ConfigMap; without this key, 600s for TCP and 60s for UDP",
		Parse:   nginx.Into(func(s *Settings) *time.Duration { return &s.Policy.IdleTimeout }, nginx.Timeout),
	}
	streamConnectTimeout = Annotation{
		Name:   prefix + "stream-connect-timeout",
		Doc:    "The timeout for connecting to an endpoint. If the timeout expires, another endpoint is tried.",
		Values: "a time such as 2s", Example: "2s", Default: "5s",
		Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.Policy.ConnectTimeout }, nginx.Timeout),
	}
	streamMaxConnections = Annotation{
		Name: prefix + "stream-max-connections",
		Doc: "The maximum number of concurrent connections of a TCP port, or of concurrent clients of a UDP port. " +
			"Further connections are rejected.",
		Values: fmt.Sprintf("a number from 1 to %d", maxConnections), Example: "500", Default: "no limit for TCP",
		Parse: nginx.Into(func(s *Settings) *int { return &s.Policy.MaxConnections }, nginx.Number(1, maxConnections)),
	}
	streamResponses = Annotation{
		Name: prefix + "stream-responses",
		Doc: "The number of responses that are expected for each datagram of a UDP client. When they have arrived, " +
			"the session of the client ends. Use 1 for protocols with one response per request, such as DNS. With 0, " +
			"a session ends only at the idle timeout.",
		Values: fmt.Sprintf("a number from 0 to %d", maxResponses), Example: "1",
		Default: "the value of proxy-stream-responses in the ConfigMap, or 0",
		Parse:   nginx.Into(func(s *Settings) *int { return &s.Policy.Responses }, nginx.Number(0, maxResponses)),
	}
)

// Settings.cap reduces settings to the maximum values in o.Most, and returns a warning for each reduced setting.
// Settings from the ConfigMap are not reduced.
func (s *Settings) cap(o *Options) (problems []report.Problem) {
	warn := func(row *Annotation, asked, most, option string) {
		problems = append(problems, report.Problem{
			Severity: report.Warning, Reason: report.QuotaExceeded, Field: report.AnnotationField(row.Name),
			Message: fmt.Sprintf(
				"%s is more than the administrator allows, so %s is used: write a smaller value, or ask the "+
					"administrator to raise %s", asked,
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

// The annotations for the PROXY protocol. They apply only to TCP ports.
var (
	streamAcceptProxy = Annotation{
		Name: prefix + "stream-accept-proxy",
		Doc: "Requires clients to send a PROXY protocol header of version 1 or 2 with their address. Connections " +
			"without this header are closed. The flag PROXY in a ConfigMap entry has the same effect.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(s *Settings) *bool { return &s.AcceptProxy }, nginx.Bool), OnError: (*Settings).close,
		Meanwhile: staysClosed,
	}
	streamTrustedProxies = Annotation{
		Name: prefix + "stream-trusted-proxies",
		Doc: "The networks of the proxies that may send the PROXY protocol header of stream-accept-proxy. " +
			"Connections from other addresses are closed. If no network in the list is valid, the ports are open, " +
			"but all connections are closed.",
		Values: "comma-separated networks and addresses", Example: "10.0.0.0/8,fd00::/8",
		Default: "all addresses",
		Parse:   nginx.Into(func(s *Settings) *[]string { return &s.Trusted }, nginx.Networks),
		OnError: (*Settings).close, Meanwhile: staysClosed,
	}
	streamProxyProtocol = Annotation{
		Name: prefix + "stream-proxy-protocol",
		Doc: "Sends a PROXY protocol header of this version with the client's address to the endpoint at the start " +
			"of each connection. If an entry of a ConfigMap contains the flag PROXY twice, the second one has the " +
			"same effect as v1.",
		Values: "v1 or v2", Example: "v2", Default: "no header",
		Parse: nginx.Into(func(s *Settings) *ir.ProxyVersion { return &s.SendProxy },
			func(value string) (ir.ProxyVersion, error) {
				version, err := nginx.OneOf(string(ir.ProxyV1), string(ir.ProxyV2))(value)
				return ir.ProxyVersion(version), err
			}),
		OnError: (*Settings).close, Meanwhile: staysClosed,
	}
)
