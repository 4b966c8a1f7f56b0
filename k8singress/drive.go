package k8singress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"crypto/tls"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/front"
	"github.com/k8singress/k8singress/internal/http1"
	"github.com/k8singress/k8singress/internal/httpserver"
	"github.com/k8singress/k8singress/internal/message"
)

func init() { front.Process().Drive = drive }

// drive serves a connection of HTTP/1.1 by our own server. The limits are those of the server that the connection was accepted for.
func drive(conn net.Conn, info *front.Info) {
	options := &httpserver.Options{
		HeaderTimeout: info.Settings.Head, BodyTimeout: bodyTimeout, WriteTimeout: bodyTimeout, KeepAlive: info.Settings.Idle,
		MaxHead: info.Settings.HeadBytes,
	}
	server := &httpserver.Server{
		Options: func() *httpserver.Options { return options },
		Handler: func(w message.Writer, r *message.Request) {
			if serving := info.Serving(); serving.Answer != nil {
				serving.Answer(w, r)
			} else {
				byCaddy(serving.Server, w, r)
			}
		},
		Refused: func(_ *message.Request, reason *http1.Error) {
			requests.note(reason.Status, time.Now())
			caddy.Log().Named("k8singress.http").Debug("a request was refused", zap.Stringer("client", conn.RemoteAddr()),
				zap.Int("status", reason.Status), zap.String("reason", reason.Reason))
		},
		Panicked: func(value any) {
			if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				return
			}
			caddy.Log().Named("k8singress.http").Error("a panic ended a connection", zap.Any("panic", value), zap.Stack("stack"))
		},
	}
	if info.Settings.HTTP2 && tlsOf(conn) == nil {
		server.HandOver = info.HandOver
	}
	info.OnLeave(func() { _ = server.Shutdown(context.Background()) }) //nolint:forbidigo // The front waits, and has the time limit.
	server.Serve(conn, message.NewConn(addressOf(conn.RemoteAddr()), addressOf(conn.LocalAddr()), tlsOf(conn)))
}

// bodyTimeout is ingress-nginx's client-body-timeout and send-timeout.
const bodyTimeout = time.Minute

func tlsOf(conn net.Conn) *tls.ConnectionState {
	secured, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	state := secured.ConnectionState()
	return &state
}

// addressOf returns one that is not valid for a Unix socket.
func addressOf(address net.Addr) netip.AddrPort {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return tcp.AddrPort()
	}
	return netip.AddrPort{}
}
