package front

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
)

// The reasons for which a TLS handshake fails, for Front.HandshakeFailed.
const (
	HandshakeTimeout = "timeout"
	HandshakeClosed  = "closed"
	HandshakeNotTLS  = "not_tls"
	HandshakeAlert   = "client_alert"
	HandshakeRefused = "refused"
)

// HandshakeReasons lists all reasons.
var HandshakeReasons = []string{HandshakeTimeout, HandshakeClosed, HandshakeNotTLS, HandshakeAlert, HandshakeRefused}

// reasonOf returns why a handshake has failed. A handshake that the server refuses, such as one without a common version or without a
// certificate for the host, is HandshakeRefused.
func reasonOf(err error) string {
	var timeout net.Error
	var op *net.OpError
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return HandshakeTimeout
	case errors.As(err, new(tls.RecordHeaderError)), errors.Is(err, errPlainHTTP):
		return HandshakeNotTLS
	case errors.As(err, &op) && op.Op == "remote error":
		return HandshakeAlert
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, net.ErrClosed):
		return HandshakeClosed
	}
	return HandshakeRefused
}

// handshakeFailed tells of a handshake that has failed.
func (f *Front) handshakeFailed(err error) {
	if f.HandshakeFailed != nil {
		f.HandshakeFailed(reasonOf(err))
	}
}
