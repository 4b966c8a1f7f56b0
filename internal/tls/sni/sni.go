// Package sni reads the server name from the ClientHello, the first message of a TLS connection. The connection can
// then be forwarded to a backend that terminates TLS. The bytes that were read are kept, and must be forwarded first.
package sni

import (
	"crypto/tls"
	"errors"
	"net"
)

var (
	// ErrTooLong means that the client's ClientHello does not fit into the buffer.
	ErrTooLong = errors.New("the TLS client hello is too long")
	// ErrNoHello means that the client did not send a ClientHello, or sent an invalid ClientHello, which crypto/tls
	// rejects. The caller should respond with a TLS alert.
	ErrNoHello = errors.New("the connection does not begin with a TLS client hello")
)

// Read reads from a connection until the TLS ClientHello is complete. It returns the server name as crypto/tls parses
// it, or "" if the client sent no name. n is the number of bytes that were read into buffer, which may be more than the
// ClientHello.
//
// The error is ErrTooLong, ErrNoHello, or an error from the connection, such as os.ErrDeadlineExceeded. Read writes
// nothing to the connection and does not change its deadlines.
func Read(conn net.Conn, buffer []byte) (name string, n int, err error) {
	h := &hello{Conn: conn, buffer: buffer}
	// Ignore the error: the handshake is expected to fail, because readHello aborts it after the ClientHello has been
	// parsed.
	_ = tls.Server(h, readHello).Handshake()
	switch {
	case h.complete:
		return h.name, h.n, nil
	case h.err != nil:
		return "", h.n, h.err
	}
	return "", h.n, ErrNoHello
}

var errRead = errors.New("the hello is read")

// readHello is a TLS configuration that aborts every handshake after the ClientHello. All connections share it, because
// crypto/tls has to initialize each new configuration, which takes longer than parsing a ClientHello.
var readHello = &tls.Config{
	GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		h := info.Conn.(*hello)
		h.name, h.complete = info.ServerName, true
		return nil, errRead
	},
}

// hello is the connection from which crypto/tls reads the ClientHello. It keeps all bytes that were read.
type hello struct {
	net.Conn
	buffer   []byte
	n        int
	name     string
	complete bool
	// err is the error from the connection, or ErrTooLong.
	err error
}

func (h *hello) Read(b []byte) (n int, err error) {
	if h.n == len(h.buffer) {
		h.err = ErrTooLong
		return 0, h.err
	}
	n, h.err = h.Conn.Read(h.buffer[h.n:min(len(h.buffer), h.n+len(b))])
	copy(b, h.buffer[h.n:h.n+n])
	h.n += n
	return n, h.err
}

// Write discards the TLS alert that crypto/tls sends when the handshake is aborted.
func (*hello) Write(b []byte) (int, error) { return len(b), nil }
