package k8singress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"time"

	"crypto/tls"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/httpserver"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/process/connlimit"
	"github.com/k8singress/k8singress/internal/process/logs"
	"github.com/k8singress/k8singress/internal/process/panics"
)

func init() {
	f := front.Process()
	f.ServeHTTP1, f.HandedOver, f.HandshakeFailed, f.RequestRefused = drive, handedOver.count, countHandshake,
		accountRefused
}

// drive serves an HTTP/1.1 connection with the controller's own HTTP server, package httpserver.
func drive(conn net.Conn, info *front.ConnInfo) {
	server := &httpserver.Server{
		Options: optionsOf(info),
		Handler: func(w message.Writer, r *message.Request) {
			if !info.Answer(w, r) {
				binding := info.Binding()
				handedOver.count(binding.Reason)
				byCaddy(binding.Server, w, r)
			}
		},
		Rejected: func(r *message.Request, reason *http1.Error) {
			accountBare(nil, r, reason.Status, time.Now())
			logs.Logger("k8singress.http").Debug("a request was rejected", zap.Stringer("client", conn.RemoteAddr()),
				zap.Int("status", reason.Status), zap.String("reason", reason.Reason))
		},
		Panicked: func(value any) {
			if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				return
			}
			panics.Report("http/handler", &panics.Panic{Value: value, Stack: debug.Stack()})
		},
	}
	if info.Limits().HTTP2 && tlsOf(conn) == nil {
		server.HandOver = func(conn net.Conn) {
			handedOver.count(reasonH2C)
			info.HandOver(conn)
		}
	}
	info.OnLeave(func() {
		_ = server.Shutdown(context.Background()) //nolint:forbidigo // The front enforces the time limit.
	})
	info.Occupy(driven{server})
	client := message.NewConn(addressOf(conn.RemoteAddr()), addressOf(conn.LocalAddr()), tlsOf(conn))
	client.Listener = info.Port()
	server.Serve(conn, client)
}

// driven implements connlimit.Occupant for a connection that drive serves.
type driven struct{ server *httpserver.Server }

// State implements connlimit.Occupant.
func (d driven) State() (connlimit.State, time.Duration) {
	if silent, ok := d.server.IdleTime(); ok {
		return connlimit.Idle, silent
	}
	return connlimit.Busy, 0
}

// End implements connlimit.Occupant.
func (d driven) End() { d.server.Drain() }

// accountRefused records a request that package front has rejected because its memory budget was exhausted.
func accountRefused(w message.Writer, r *message.Request, began time.Time) {
	accountBare(w, r, http.StatusServiceUnavailable, began)
}

// optionsOf returns a function that returns the current limits for a connection. The function is called for each
// request; it only creates new Options if a limit has changed.
func optionsOf(info *front.ConnInfo) func() *httpserver.Options {
	var limits front.Limits
	var options *httpserver.Options
	return func() *httpserver.Options {
		if now := info.Limits(); options == nil || now != limits {
			limits = now
			options = &httpserver.Options{
				HeaderTimeout: now.Head, BodyTimeout: now.Body, WriteTimeout: now.Send, KeepAlive: now.Idle,
				KeepAliveRequests: now.Requests, MaxHead: now.HeadBytes, Names: now.Names,
			}
		}
		return options
	}
}

func tlsOf(conn net.Conn) *tls.ConnectionState {
	secured, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	state := secured.ConnectionState()
	return &state
}

// addressOf returns the address and port of a TCP connection, or the zero AddrPort for a Unix socket.
func addressOf(address net.Addr) netip.AddrPort {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return tcp.AddrPort()
	}
	return netip.AddrPort{}
}
