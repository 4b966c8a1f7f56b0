package configmap

import (
	"fmt"
	"time"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

const (
	maxStreamTries = 100
	// oneTry is the maximum number of connection attempts if retries are disabled.
	oneTry = 1
)

// The ConfigMap keys proxy-stream-*, which apply to TCP and UDP ports.
var (
	proxyStreamTimeout = Key{
		Name: "proxy-stream-timeout", Scope: process,
		Doc: "The idle timeout of connections to TCP ports, of sessions of UDP clients, and of TLS connections that " +
			"ssl-passthrough forwards. Each of them ends if no data is sent in either direction for this time.",
		Values: "a time such as 600s or 10m", Example: "10m", Default: "600s for TCP, and 60s for UDP",
		Parse: nginx.Into(func(c *Config) *time.Duration { return &c.Global.Streams.IdleTimeout }, nginx.Timeout),
	}
	proxyStreamNextUpstream = Key{
		Name: "proxy-stream-next-upstream", Scope: process,
		Doc: "Tries another endpoint if an endpoint does not accept a connection. This applies to connections to TCP " +
			"ports, and to TLS connections that ssl-passthrough forwards.",
		Values: booleans, Example: "false", Default: "true",
		Parse: func(c *Config, value string) error {
			others, err := nginx.Bool(value)
			if err == nil && !others {
				c.Global.Streams.Tries = oneTry
			}
			return err
		},
	}
	proxyStreamNextUpstreamTimeout = Key{
		Name: "proxy-stream-next-upstream-timeout", Scope: process,
		Doc: "The time after the start of a client's connection during which proxy-stream-next-upstream may try " +
			"another endpoint. 0 means no limit.",
		Values: "a time such as 600s or 10m", Example: "30s", Default: "600s",
		Parse: nginx.Into(func(c *Config) *time.Duration { return &c.Global.Streams.TriesTimeout }, readDrain),
	}
	proxyStreamNextUpstreamTries = Key{
		Name: "proxy-stream-next-upstream-tries", Scope: process,
		Doc: "The maximum number of endpoints that proxy-stream-next-upstream tries for a connection. 0 means 100, " +
			"the maximum; in ingress-nginx, 0 means no limit.",
		Values:  fmt.Sprintf("a number from 0 to %d; larger numbers are treated as %[1]d", maxStreamTries),
		Example: "2", Default: "3",
		Parse: parseStreamTries,
	}
	proxyStreamResponses = Key{
		Name: "proxy-stream-responses", Scope: process,
		Doc: "The number of responses that are expected for each datagram of a UDP client. When they have arrived, " +
			"the session of the client ends. This saves memory for protocols with one response per request, such as " +
			"DNS. With 0, a session ends only at the idle timeout.",
		Values: "a number from 0 to 1000000", Example: "1", Default: "0 (1 in ingress-nginx)",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Streams.Responses }, nginx.Number(0, 1_000_000)),
	}
)

// parseStreamTries sets the maximum number of connection attempts. If proxy-stream-next-upstream is off, the value is
// ignored, and only one attempt is made. Therefore proxy-stream-next-upstream must be parsed first.
func parseStreamTries(c *Config, value string) error {
	n, err := nginx.Number(0, 1<<31-1)(value)
	switch {
	case err != nil:
		return fmt.Errorf("%s is not a number from 0 to %d", nginx.Quote(value), maxStreamTries)
	case c.Global.Streams.Tries == oneTry:
		return nil
	case n == 0:
		n = maxStreamTries
	}
	c.Global.Streams.Tries = min(n, maxStreamTries)
	return nil
}
