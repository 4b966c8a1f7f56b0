package streams

import (
	"fmt"
	"time"

	"github.com/k8singress/k8singress/internal/nginx"
)

const (
	mostConnections = 1_000_000
	mostResponses   = 1_000_000
)

// The rows of how connections are passed on.
var (
	streamIdleTimeout = Annotation{
		Name:   prefix + "stream-idle-timeout",
		Doc:    "For how long nothing may move in either direction before a connection, or the session of a UDP client, is ended.",
		Values: "a time such as 90s or 10m", Example: "1h", Default: "what proxy-stream-timeout says: 600s for TCP, and 60s for UDP",
		Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.Policy.IdleTimeout }, nginx.Timeout),
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
		Doc: "After how many responses to each of its datagrams the session of a UDP client ends. 1 is for protocols with one request and one " +
			"response, such as DNS. 0 ends it when it is idle.",
		Values: fmt.Sprintf("a number from 0 to %d", mostResponses), Example: "1", Default: "what proxy-stream-responses says: 0",
		Parse: nginx.Into(func(s *Settings) *int { return &s.Policy.Responses }, nginx.Number(0, mostResponses)),
	}
)
