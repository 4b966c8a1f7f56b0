package l4app

import (
	"errors"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/mholt/caddy-l4/layer4"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/balancer"
)

// mostSessions is how many clients a UDP port remembers. Each one costs a socket towards an endpoint, and their addresses may
// be forged, so there has to be a limit.
const mostSessions = 16 << 10

// terms are how the datagrams of a port are passed on.
type terms struct {
	backend *balancer.Backend
	idle    time.Duration
	// responses is after how many answers to each question a session ends; zero is never.
	responses int64
	most      int64
	tries     int
	log       *zap.Logger
}

var errOneHandler = errors.New("a UDP port has one route, with the handler k8singress alone and no matcher; " +
	"whatever needs more can be a server of the layer4 app in the Caddy configuration")

// newTerms provisions the server of a UDP port. It does without caddy-l4, which makes each client a connection.
func newTerms(ctx caddy.Context, s *layer4.Server, log *zap.Logger) (*terms, error) {
	if len(s.Routes) != 1 || len(s.Routes[0].MatcherSetsRaw) > 0 || len(s.Routes[0].HandlersRaw) != 1 {
		return nil, errOneHandler
	}
	if slices.ContainsFunc(s.Listen, func(a string) bool { return !isPacketAddress(a) }) {
		return nil, errors.New("a port has addresses of either TCP or UDP")
	}
	loaded, err := ctx.LoadModule(s.Routes[0], "HandlersRaw")
	if err != nil {
		return nil, err
	}
	h, ok := loaded.([]any)[0].(*Handler)
	if !ok {
		return nil, errOneHandler
	}
	return &terms{
		backend: h.backend, responses: int64(h.Policy.Responses), log: log,
		idle: orDefault(h.Policy.IdleTimeout, orDefault(time.Duration(s.IdleTimeout), datagramIdle)),
		most: int64(orDefault(h.Policy.MaxConnections, mostSessions)), tries: orDefault(h.Policy.Tries, tries),
	}, nil
}

// isPacketAddress says whether an address is one of UDP.
func isPacketAddress(text string) bool {
	address, err := caddy.ParseNetworkAddress(text)
	return err == nil && isPacket(address.Network)
}

// settled says whether a session has an endpoint to which its datagrams may go on going.
func (t *terms) settled(s *session) bool {
	return s.line.isOpen() && s.backend == t.backend && !s.refused && s.choice.Endpoint.Listed()
}

// settle finds an endpoint for a session that is not settled: not the one that has refused it, if there is another one.
func (t *terms) settle(s *session) error {
	var tried []*balancer.Endpoint
	if s.line.isOpen() && s.refused {
		tried = append(tried, s.choice.Endpoint)
	}
	err := errNoEndpoint
	for range t.tries {
		choice, ok := t.backend.Pick(asker(s.peer.client), tried)
		if !ok {
			break
		}
		if s.line.isOpen() && s.choice.Endpoint == choice.Endpoint {
			// Somebody may listen there by now.
			s.refused = false
			return nil
		}
		if slices.Contains(tried, choice.Endpoint) {
			break
		}
		tried = append(tried, choice.Endpoint)
		var opened line
		if opened, err = openLine(choice.Endpoint.Address()); err == nil {
			s.hangUp()
			s.backend, s.choice, s.line = t.backend, choice, opened
			choice.Begin()
			return nil
		}
		if isShort(err) {
			return err
		}
		choice.Observe(0, true)
	}
	return err
}
