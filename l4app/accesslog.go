package l4app

import (
	"net"
	"time"

	"github.com/mholt/caddy-l4/layer4"

	"github.com/k8singress/k8singress/internal/http/accesslog"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/udp"
)

// noted is the access log record of one TCP connection. A nil *noted means that the connection is not logged.
type noted struct {
	accesslog.Session
	log *accesslog.Streams
}

// note starts the access log record of a connection. It returns nil if there is no access log. The initial status is
// StreamUnread: the connection ended before its client sent the data that the port requires. The methods is and carried
// set another status.
func (p *port) note(conn net.Conn) *noted {
	log := p.accessLog()
	if log == nil {
		return nil
	}
	return &noted{log: log, Session: accesslog.Session{
		Protocol: ir.TCP, Client: addressOf(conn.RemoteAddr()), Server: addressOf(conn.LocalAddr()),
		Status: accesslog.StreamUnread, Began: time.Now(),
	}}
}

const notedVar = "k8singress.noted"

// goesWith attaches the record to a connection of caddy-l4.
func (n *noted) goesWith(cx *layer4.Connection) {
	if n != nil {
		cx.SetVar(notedVar, n)
	}
}

// notedOf returns the record that is attached to a connection, or nil.
func notedOf(cx *layer4.Connection) *noted {
	n, _ := cx.GetVar(notedVar).(*noted)
	return n
}

// is sets the status in the record.
func (n *noted) is(status int) {
	if n != nil {
		n.Status = status
	}
}

// comesFrom sets the client address in the record to the address from a PROXY protocol header.
func (n *noted) comesFrom(client net.Addr) {
	if n != nil {
		n.Client = addressOf(client)
	}
}

// goesTo sets the backend in the record.
func (n *noted) goesTo(to *balancer.Backend) {
	if n != nil {
		n.Backend = to.ID()
	}
}

// carried sets the status in the record to StreamServed, and copies the endpoint and the traffic from l.
func (n *noted) carried(l *link) {
	if n != nil {
		n.Status, n.Endpoint, n.Received, n.Sent = accesslog.StreamServed, l.endpoint.Address(),
			l.up.Load(), l.down.Load()
	}
}

// end writes the record to the access log.
func (n *noted) end() {
	if n != nil {
		n.log.Note(n.Session)
	}
}

// noteDatagrams logs an ended session of a UDP client.
func noteDatagrams(log *accesslog.Streams, of udp.Ended) {
	status := accesslog.StreamNoEndpoint
	if of.Served {
		status = accesslog.StreamServed
	}
	log.Note(accesslog.Session{
		Protocol: ir.UDP, Client: of.Client, Server: of.Server, Backend: of.Backend, Endpoint: of.Endpoint,
		Status:   status,
		Received: of.Received, Sent: of.Sent, Began: of.Began,
	})
}
