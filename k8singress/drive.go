package k8singress

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/httpserver"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/process/connlimit"
	"github.com/k8singress/k8singress/internal/process/netconn"
	"github.com/k8singress/k8singress/internal/process/panics"
)

func init() {
	f := front.Process()
	f.Drivers["http/1.1"] = drive
	f.HandedOver, f.HandshakeFailed, f.RefuseRequest = handedOver.count, countHandshake, refuseRequest
}

// drive serves an HTTP/1.1 connection with the controller's own HTTP server, package httpserver.
func drive(conn net.Conn, info *front.ConnInfo) {
	client := message.NewConn(netconn.AddrPort(conn.RemoteAddr()), netconn.AddrPort(conn.LocalAddr()), tlsOf(conn))
	client.Listener = info.Port()
	d := &driven{ConnInfo: info}
	d.Conn = httpserver.New(conn, client, d)
	info.OnLeave(d.Shutdown)
	info.Occupy(d)
	d.Serve()
}

// driven is a connection that drive serves. It implements httpserver.Host and connlimit.Occupant.
type driven struct {
	*front.ConnInfo
	*httpserver.Conn
}

var (
	_ httpserver.Host    = (*driven)(nil) // The method Limits is ConnInfo's.
	_ connlimit.Occupant = (*driven)(nil)
)

// Handle implements httpserver.Host.
func (d *driven) Handle(w message.Writer, r *message.Request) {
	if !d.Answer(w, r) {
		binding := d.Binding()
		handedOver.count(binding.Reason)
		byCaddy(http.HandlerFunc(binding.ServeByCaddy), binding.Clients(), w, r)
	}
}

// HandOver implements httpserver.Host.
func (d *driven) HandOver(conn net.Conn) {
	handedOver.count(reasonH2C)
	d.ConnInfo.HandOver(conn)
}

// Reject implements httpserver.Host.
func (d *driven) Reject(w message.Writer, r *message.Request, reason *http1.Error) {
	x := &exchange.Exchange{Request: r, Writer: w, Clients: d.Binding().Clients(), ErrorReason: reason.Reason}
	refuseBare(x, time.Now(), exchange.Rejection(reason.Status, reason.Error()))
}

// ReportPanic implements httpserver.Host.
func (*driven) ReportPanic(value any) {
	if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return
	}
	panics.Report("http/handler", &panics.Panic{Value: value, Stack: debug.Stack()})
}

// State implements connlimit.Occupant.
func (d *driven) State() (connlimit.State, time.Duration) {
	if silent, ok := d.IdleTime(); ok {
		return connlimit.Idle, silent
	}
	return connlimit.Busy, 0
}

// End implements connlimit.Occupant.
func (d *driven) End() { d.Drain() }

var errNoMemory = exchange.Fail(http.StatusServiceUnavailable,
	errors.New("the memory for the requests of HTTP/2 and HTTP/3, k8singress_request_bytes_limit, is used up"))

// refuseRequest responds to a request that package front rejects because its memory budget is exhausted.
func refuseRequest(s *front.Binding, w message.Writer, r *message.Request, began time.Time) {
	x := &exchange.Exchange{Request: r, Writer: w, Clients: s.Clients()}
	refuseBare(x, began, errNoMemory, message.NewField("Retry-After", retryAfter))
}

func tlsOf(conn net.Conn) *tls.ConnectionState {
	secured, ok := conn.(interface{ ConnectionState() tls.ConnectionState })
	if !ok {
		return nil
	}
	state := secured.ConnectionState()
	return &state
}
