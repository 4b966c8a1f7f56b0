package configmap

import (
	"fmt"
	"time"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

const (
	mostStreamTries = 100
	// oneTry tries no second endpoint.
	oneTry = 1
)

// The keys proxy-stream-*.
var (
	proxyStreamTimeout = Key{
		Name: "proxy-stream-timeout", Scope: process,
		Doc: "For how long nothing may move in either direction on a connection of a TCP port or one that is passed " +
			"through (ssl-passthrough), or between a client of a UDP port and its endpoint, before it is ended.",
		Values: "a time such as 600s or 10m", Example: "10m", Default: "600s for TCP, and 60s for UDP",
		Parse: nginx.Into(func(c *Config) *time.Duration { return &c.Global.Streams.IdleTimeout }, nginx.Timeout),
	}
	proxyStreamNextUpstream = Key{
		Name: "proxy-stream-next-upstream", Scope: process,
		Doc: "Lets a connection of a TCP port, or one that is passed through, go to another endpoint where one " +
			"does not accept it.",
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
		Doc:    "For how long after a connection has come another endpoint may still be tried. 0 is without limit.",
		Values: "a time such as 600s or 10m", Example: "30s", Default: "600s",
		Parse: nginx.Into(func(c *Config) *time.Duration { return &c.Global.Streams.TriesTimeout }, readDrain),
	}
	proxyStreamNextUpstreamTries = Key{
		Name: "proxy-stream-next-upstream-tries", Scope: process,
		Doc: "How many endpoints are tried at most, one after the other, for a connection. ingress-nginx has no " +
			"limit at 0: here it is the most.",
		Values: fmt.Sprintf("a number from 0 to %d; more count as that", mostStreamTries), Example: "2", Default: "3",
		Parse: parseStreamTries,
	}
	proxyStreamResponses = Key{
		Name: "proxy-stream-responses", Scope: process,
		Doc: "After how many responses to each of its datagrams the session of a UDP client ends, which saves the " +
			"memory of sessions with one question, as in DNS. 0 ends it when it is idle.",
		Values: "a number from 0 to 1000000", Example: "1", Default: "0; it is 1 in ingress-nginx",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Streams.Responses }, nginx.Number(0, 1_000_000)),
	}
)

// parseStreamTries sets the number of tries. It keeps a single try if proxy-stream-next-upstream, which is parsed
// first, is off.
func parseStreamTries(c *Config, value string) error {
	n, err := nginx.Number(0, 1<<31-1)(value)
	switch {
	case err != nil:
		return fmt.Errorf("%s is not a number from 0 to %d", nginx.Quote(value), mostStreamTries)
	case c.Global.Streams.Tries == oneTry:
		return nil
	case n == 0:
		n = mostStreamTries
	}
	c.Global.Streams.Tries = min(n, mostStreamTries)
	return nil
}
