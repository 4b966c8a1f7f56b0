package front

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
)

// The reasons for failed TLS handshakes, with which Front.HandshakeFailed is called.
const (
	HandshakeTimeout = "timeout"
	HandshakeClosed  = "closed"
	HandshakeNotTLS  = "not_tls"
	HandshakeAlert   = "client_alert"
	HandshakeRefused = "refused"
)

// HandshakeReasons lists all reasons with which Front.HandshakeFailed can be called.
var HandshakeReasons = []string{HandshakeTimeout, HandshakeClosed, HandshakeNotTLS, HandshakeAlert, HandshakeRefused}

// reasonOf returns the reason why a handshake failed with err. It returns HandshakeRefused if the server rejected the
// handshake, for example because there is no common TLS version or no certificate for the host.
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
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, net.ErrClosed):
		return HandshakeClosed
	}
	return HandshakeRefused
}

// handshakeFailed calls HandshakeFailed, if it is set.
func (f *Front) handshakeFailed(err error) {
	if f.HandshakeFailed != nil {
		f.HandshakeFailed(reasonOf(err))
	}
}
