package live

import (
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/mtls"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// clientAuthCount returns 1 for a host with a policy for client certificates, otherwise 0. The host may be nil.
func (h *host) clientAuthCount() int {
	if h == nil || h.clients == nil {
		return 0
	}
	return 1
}

// RequestsClientCert reports whether TLS handshakes with the host request a client certificate. The host may be nil.
func (h *host) RequestsClientCert() bool {
	return h != nil && h.clients != nil && h.clients.RequestsCert()
}

// acceptsSameClients reports whether two versions of a host have the same configuration for client certificates. If so,
// open streams may continue when one version replaces the other.
func (h *host) acceptsSameClients(other *host) bool {
	a, b := h.clientAuth, other.clientAuth
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Origin, y.Origin = ir.Origin{}, ir.Origin{}
	return x == y
}

// admit checks whether the client of a request may access the host h. It returns nil if so, otherwise the response to
// send. It rejects a request whose client certificate the host does not accept. It also rejects a request on a TLS
// connection that was opened for another host, if one of the two hosts requests client certificates. If the host
// accepts a client certificate, admit stores it in the exchange and sets the request header fields that describe it.
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

// misdirected reports whether a request must be rejected because its TLS connection was opened for another host, and at
// least one of the two hosts requests client certificates. server is the server name in the handshake, name is the host
// name in the request, and h is the virtual host with this name. A handshake without a server name counts as a
// handshake for the fallback host.
func (x *index) misdirected(server, name string, h *host) bool {
	server = message.Hostname(server)
	if server == name {
		return false
	}
	served := x.find(server)
	if server == "" && served == h {
		return false
	}
	return h.RequestsClientCert() || served.RequestsClientCert()
}

// checkStreams is called when a Secret with CA certificates for client certificates has changed. After the drain time,
// it ends the open streams of clients whose certificates are not accepted at that time.
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

// rejects reports whether the host would now reject the client certificate with which an open stream was authenticated.
func (h *host) rejects(s stream) bool {
	_, refusal := h.clients.Check(s.connection)
	return refusal != nil && !s.anyClient
}

// challenges is the path under which certificate authorities send ACME HTTP-01 challenge requests.
const challenges = "/.well-known/acme-challenge"

// servesChallenges reports whether both the path of the request and the path of the route are below the path for ACME
// challenges. Such a request needs no client certificate, because certificate authorities do not present one. The path
// of the request is checked as well, because a route whose path is a regular expression may match other paths too.
func (r *Route) servesChallenges(request *message.Request) bool {
	return r != nil && strings.HasPrefix(r.Path, challenges) &&
		strings.HasPrefix(message.CleanPath(request.Path), challenges+"/")
}
