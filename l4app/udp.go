package l4app

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/mholt/caddy-l4/layer4"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/process/netaddr"
	"github.com/k8singress/k8singress/internal/upstream/udp"
)

// maxSessions is the default maximum number of sessions of a UDP port; each client has one session. A limit is
// necessary because each session uses a socket, and an attacker can forge any number of client addresses.
const maxSessions = 16 << 10

var errOneHandler = errors.New(
	"a UDP port must have exactly one route, without matchers and with the handler k8singress only: for anything " +
		"else, configure a server of the layer4 app in Caddy")

// udpSettings provisions the handler of a UDP port, and converts its settings for package udp. The caddy-l4 server
// itself is not used, because it would create a connection for each client.
func udpSettings(ctx caddy.Context, s *layer4.Server, log *zap.Logger) (*udp.Settings, error) {
	if len(s.Routes) != 1 || len(s.Routes[0].MatcherSetsRaw) > 0 || len(s.Routes[0].HandlersRaw) != 1 {
		return nil, errOneHandler
	}
	if slices.ContainsFunc(s.Listen, func(a string) bool { return !isPacketAddress(a) }) {
		return nil, errors.New("a port cannot have both TCP and UDP addresses")
	}
	loaded, err := ctx.LoadModule(s.Routes[0], "HandlersRaw")
	if err != nil {
		return nil, err
	}
	h, ok := loaded.([]any)[0].(*Handler)
	if !ok || h.service != nil {
		return nil, errOneHandler
	}
	return &udp.Settings{
		Backends: h.backends, Responses: int64(h.Policy.Responses), Tries: cmp.Or(h.Policy.Tries, tries),
		IdleTimeout: cmp.Or(h.Policy.IdleTimeout, time.Duration(s.IdleTimeout), datagramIdle),
		MaxSessions: int64(cmp.Or(h.Policy.MaxConnections, maxSessions)), Share: h.share, Outgoing: h.outgoing,
		Guard:      h.guard,
		NoEndpoint: func(message string, fields ...zap.Field) { h.account.warn(log, noEndpoint, message, fields...) },
		Broken: func(message string, fields ...zap.Field) {
			h.account.warn(log, internalError, message, fields...)
		},
		Ended: func(of udp.Ended) { logDatagrams(h.accessLog(), of) },
	}, nil
}

// isPacketAddress reports whether an address is a UDP address.
func isPacketAddress(text string) bool {
	address, err := caddy.ParseNetworkAddress(text)
	return err == nil && netaddr.Transport(address.Network) == "udp"
}
