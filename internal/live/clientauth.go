package live

import (
	"strings"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/mtls"
)

// AsksClient says whether the handshake that comes by a port for a server name is to ask the client for a certificate. The name is as
// the client wrote it, or empty.
func (t *Table) AsksClient(port uint16, name string) bool {
	name = message.Hostname(name)
	x := t.at(port, name)
	return x.asking > 0 && x.find(name).asksClient()
}

// asking is one for a host that has a policy for the certificates of its clients.
func (h *host) asking() int {
	if h == nil || h.clients == nil {
		return 0
	}
	return 1
}

func (h *host) asksClient() bool { return h != nil && h.clients != nil && h.clients.Asks() }

// admitsLike says whether two hosts let in the same clients, so that a stream may go on from one to the other.
func (h *host) admitsLike(other *host) bool {
	a, b := h.clientAuth, other.clientAuth
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Origin, y.Origin = ir.Origin{}, ir.Origin{}
	return x == y
}

// admit returns the answer that a request gets in place of everything else: if the connection that it comes by was made for another
// host, and one of the two asks for certificates, or if the client is not to be let in. Otherwise it is nil, and on a host that wants
// to know who the client is, that stands in the exchange and in the fields of the request.
func (x *index) admit(q *exchange.Exchange, name string, h *host, route *Route) *mtls.Refusal {
	if q.TLS() != nil && x.misdirected(q.TLS().ServerName, name, h) {
		return mtls.Misdirected
	}
	if h == nil || h.clients == nil {
		return nil
	}
	client, refusal := h.clients.Check(q.TLS())
	if refusal != nil && !route.answersChallenges(q.Request) {
		return refusal
	}
	h.clients.SetFields(client, &q.Fields)
	q.Peer = client
	return nil
}

// misdirected compares the name of the handshake with the host of the request: the handshake has asked for a certificate, or
// not, as the one wants it. A client that names nobody has been served as the host for everybody else.
func (x *index) misdirected(server, name string, h *host) bool {
	server = message.Hostname(server)
	if server == name {
		return false
	}
	served := x.find(server)
	if server == "" && served == h {
		return false
	}
	return h.asksClient() || served.asksClient()
}

// checkStreams ends, when their time is over, the streams of clients whom a Secret lets in no longer. Until then it may let
// them in again.
func (t *Table) checkStreams(secret ir.Name) {
	var list []endingStreams
	t.hostsThatAsk(func(h *host) {
		if h.clients == nil || h.clientAuth.Secret != secret {
			return
		}
		for _, r := range h.all {
			list = append(list, endingStreams{r.streams, h.keepsOut})
		}
	})
	t.drain(list)
}

// keepsOut says whether the client of a stream would not be let in by now.
func (h *host) keepsOut(s stream) bool {
	_, refusal := h.clients.Check(s.connection)
	return refusal != nil && !s.anybody
}

// challenges is where authorities look for the answers to their challenges.
const challenges = "/.well-known/acme-challenge"

// answersChallenges says whether a request is for such an answer, and the route for nothing else: an authority has no
// certificate to show. That a regular expression begins like that does not say that its requests do.
func (r *Route) answersChallenges(request *message.Request) bool {
	return r != nil && strings.HasPrefix(r.Path, challenges) && strings.HasPrefix(message.CleanPath(request.Path), challenges+"/")
}
