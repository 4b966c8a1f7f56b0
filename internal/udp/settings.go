package udp

import (
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/balancer"
)

// Settings are how the datagrams of a port are forwarded. They are immutable.
type Settings struct {
	Backend *balancer.Backend
	// IdleTimeout is after how long without a datagram a session ends.
	IdleTimeout time.Duration
	// Responses is after how many responses to each request a session ends; zero is never.
	Responses int64
	// MaxSessions is how many sessions a port may have. Each one costs a socket.
	MaxSessions int64
	// Tries is how many endpoints are tried for a session.
	Tries int
	// NoEndpoint is called when an endpoint refuses datagrams or cannot be found, and Broken after a fault of the forwarder.
	NoEndpoint, Broken func(message string, fields ...zap.Field)
}

// connected says whether a session has an endpoint that its next datagrams may go to.
func (c *Settings) connected(s *session) bool {
	return s.upstream.isOpen() && s.backend == c.Backend && !s.refused && s.choice.Endpoint.Listed()
}

// connect finds an endpoint for a session that is not connected: another one than that which refused it, if there is one.
func (c *Settings) connect(s *session) error {
	var tried []*balancer.Endpoint
	if s.upstream.isOpen() && s.refused {
		tried = append(tried, s.choice.Endpoint)
	}
	err := balancer.ErrNoEndpoint
	for range c.Tries {
		choice, ok := c.Backend.Pick(balancer.Address(s.key.client), tried)
		if !ok {
			break
		}
		if s.upstream.isOpen() && s.choice.Endpoint == choice.Endpoint {
			// It may accept datagrams again by now.
			s.refused = false
			return nil
		}
		if slices.Contains(tried, choice.Endpoint) {
			break
		}
		tried = append(tried, choice.Endpoint)
		var upstream upstreamConn
		if upstream, err = dial(choice.Endpoint.Address()); err == nil {
			s.disconnect()
			s.backend, s.choice, s.upstream = c.Backend, choice, upstream
			choice.Begin()
			return nil
		}
		if isExhausted(err) {
			return err
		}
		choice.Observe(0, true)
	}
	return err
}
