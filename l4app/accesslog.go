package l4app

import (
	"net"
	"time"

	"github.com/mholt/caddy-l4/layer4"

	"github.com/k8singress/k8singress/internal/http/accesslog"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/netconn"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/udp"
)

// logRecord is the access log record of one TCP connection. The methods do nothing if the logRecord is nil, which means
// that the connection is not logged.
type logRecord struct {
	accesslog.Session
	log *accesslog.Streams
}

// newRecord starts the access log record of a connection. It returns nil if there is no access log. The status in the
// record starts as StreamUnread, and keeps this value if the connection ends before the client has sent the data that
// the port requires, such as a ClientHello. setStatus and setTraffic change it.
func (p *port) newRecord(conn net.Conn) *logRecord {
	log := p.accessLog()
	if log == nil {
		return nil
	}
	return &logRecord{log: log, Session: accesslog.Session{
		Protocol: ir.TCP, Client: netconn.AddrPort(conn.RemoteAddr()), Server: netconn.AddrPort(conn.LocalAddr()),
		Status: accesslog.StreamUnread, Began: time.Now(),
	}}
}

const recordVar = "k8singress.noted"

// attach stores the record in a caddy-l4 connection, so that recordOf finds it.
func (n *logRecord) attach(cx *layer4.Connection) {
	if n != nil {
		cx.SetVar(recordVar, n)
	}
}

// recordOf returns the access log record of a connection, or nil.
func recordOf(cx *layer4.Connection) *logRecord {
	n, _ := cx.GetVar(recordVar).(*logRecord)
	return n
}

// setStatus sets the status of the connection in the access log record.
func (n *logRecord) setStatus(status int) {
	if n != nil {
		n.Status = status
	}
}

// setClient replaces the client address in the access log record by the address from a PROXY protocol header.
func (n *logRecord) setClient(client net.Addr) {
	if n != nil {
		n.Client = netconn.AddrPort(client)
	}
}

// setBackend sets the backend in the access log record.
func (n *logRecord) setBackend(to *balancer.Backend) {
	if n != nil {
		n.Backend = to.ID()
	}
}

// setTraffic sets the status in the access log record to StreamServed. It also copies the endpoint's address and the
// number of bytes in each direction from the link l, which connects the client and the endpoint.
func (n *logRecord) setTraffic(l *link) {
	if n != nil {
		n.Status, n.Endpoint, n.Received, n.Sent = accesslog.StreamServed, l.endpoint.Address(),
			l.up.Load(), l.down.Load()
	}
}

// The method end writes the record to the access log.
func (n *logRecord) end() {
	if n != nil {
		n.log.Record(n.Session)
	}
}

// logDatagrams writes the access log record of a UDP session that has ended.
func logDatagrams(log *accesslog.Streams, of udp.Ended) {
	status := accesslog.StreamNoEndpoint
	if of.Served {
		status = accesslog.StreamServed
	}
	log.Record(accesslog.Session{
		Protocol: ir.UDP, Client: of.Client, Server: of.Server, Backend: of.Backend, Endpoint: of.Endpoint,
		Status:   status,
		Received: of.Received, Sent: of.Sent, Began: of.Began,
	})
}
