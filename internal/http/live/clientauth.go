package live

import (
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/mtls"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// RequestsClientCert reports whether the TLS handshake for a server name on a port should request a client certificate.
// The name is as the client sent it, or empty.
func (t *Table) RequestsClientCert(port uint16, name string) bool {
	name = message.Hostname(name)
	x := t.indexFor(port, name)
	return x.withClientAuth > 0 && x.find(name).requestsClientCert()
}

// clientAuthCount returns 1 for a host with a policy for client certificates, otherwise 0. The host may be nil.
func (h *host) clientAuthCount() int {
	if h == nil || h.clients == nil {
		return 0
	}
	return 1
}

func (h *host) requestsClientCert() bool {
	return h != nil && h.clients != nil && h.clients.RequestsCert()
}

// acceptsSameClients reports whether two hosts accept the same clients, so that a stream may continue when one host
// replaces the other.
func (h *host) acceptsSameClients(other *host) bool {
	a, b := h.clientAuth, other.clientAuth
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Origin, y.Origin = ir.Origin{}, ir.Origin{}
	return x == y
}

// admit returns the response for a request that must not reach its route, or nil. A request is rejected if its
// connection was made for another host and one of the two hosts requests client certificates, or if the host does not
// accept the client. If the host has a client policy and the client is accepted, admit stores the client in the
// exchange and sets the client header fields of the request.
func (x *index) admit(q *exchange.Exchange, name string, h *host, route *Route) *mtls.Refusal {
	if q.TLS() != nil && x.misdirected(q.TLS().ServerName, name, h) {
		return mtls.Misdirected
	}
	if h == nil || h.clients == nil {
		return nil
	}
	client, refusal := h.clients.Check(q.TLS())
	if refusal != nil && !route.servesChallenges(q.Request) {
		return refusal
	}
	h.clients.SetFields(client, &q.Fields)
	q.Peer = client
	return nil
}

// misdirected reports whether the handshake of the connection was for another host than the request, and one of the two
// hosts requests client certificates. A client without a server name was served as the fallback host.
func (x *index) misdirected(server, name string, h *host) bool {
	server = message.Hostname(server)
	if server == name {
		return false
	}
	served := x.find(server)
	if server == "" && served == h {
		return false
	}
	return h.requestsClientCert() || served.requestsClientCert()
}

// checkStreams ends the streams of clients that a changed Secret no longer accepts, after the drain time. The check is
// repeated then, because the Secret may have changed again.
func (t *Table) checkStreams(secret ir.Name) {
	var list []endingStreams
	t.hostsWithClientAuth(func(h *host) {
		if h.clients == nil || h.clientAuth.Secret != secret {
			return
		}
		for _, r := range h.all {
			list = append(list, endingStreams{r.streams, h.rejects})
		}
	})
	t.drain(list)
}

// rejects reports whether the client of a stream would be rejected now.
func (h *host) rejects(s stream) bool {
	_, refusal := h.clients.Check(s.connection)
	return refusal != nil && !s.anyClient
}

// challenges is the path below which certificate authorities fetch ACME HTTP-01 challenges.
const challenges = "/.well-known/acme-challenge"

// servesChallenges reports whether a request fetches an ACME challenge and the route serves only challenges.
// Certificate authorities present no client certificate. The path of the request is checked too, because a regular
// expression that begins with the prefix may match other paths.
func (r *Route) servesChallenges(request *message.Request) bool {
	return r != nil && strings.HasPrefix(r.Path, challenges) &&
		strings.HasPrefix(message.CleanPath(request.Path), challenges+"/")
}
