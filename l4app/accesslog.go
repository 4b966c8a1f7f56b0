package l4app

import (
	"net"
	"time"

	"github.com/mholt/caddy-l4/layer4"

	"github.com/k8singress/k8singress/internal/accesslog"
	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/udp"
)

// noted is a connection of a TCP port on the way to its line in the access log. A nil one has none.
type noted struct {
	accesslog.Session
	log *accesslog.Streams
}

// note begins the line of a connection. Until is or carried says what became of it, its client did not begin as the port demands.
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

// goesWith has a connection of caddy-l4 bring the line along.
func (n *noted) goesWith(cx *layer4.Connection) {
	if n != nil {
		cx.SetVar(notedVar, n)
	}
}

// notedOf returns the line that a connection brings along, or nil.
func notedOf(cx *layer4.Connection) *noted {
	n, _ := cx.GetVar(notedVar).(*noted)
	return n
}

// is says what became of the connection.
func (n *noted) is(status int) {
	if n != nil {
		n.Status = status
	}
}

// comesFrom says who the client is, by a PROXY protocol header.
func (n *noted) comesFrom(client net.Addr) {
	if n != nil {
		n.Client = addressOf(client)
	}
}

// goesTo says where the connection goes.
func (n *noted) goesTo(to *balancer.Backend) {
	if n != nil {
		n.Backend = to.ID()
	}
}

// carried says what an endpoint and the client have said to each other.
func (n *noted) carried(l *link) {
	if n != nil {
		n.Status, n.Endpoint, n.Received, n.Sent = accesslog.StreamServed, l.endpoint.Address(), l.up.Load(), l.down.Load()
	}
}

// end writes the line.
func (n *noted) end() {
	if n != nil {
		n.log.Note(n.Session)
	}
}

// noteDatagrams writes the line of a client of a UDP port.
func noteDatagrams(log *accesslog.Streams, of udp.Ended) {
	status := accesslog.StreamNoEndpoint
	if of.Served {
		status = accesslog.StreamServed
	}
	log.Note(accesslog.Session{
		Protocol: ir.UDP, Client: of.Client, Server: of.Server, Backend: of.Backend, Endpoint: of.Endpoint, Status: status,
		Received: of.Received, Sent: of.Sent, Began: of.Began,
	})
}
