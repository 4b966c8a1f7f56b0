// Package sni reads the server name out of the first message of a TLS connection, so that the connection can be handed to
// the backend that ends its TLS, with all of its bytes.
package sni

import (
	"crypto/tls"
	"errors"
	"net"
)

var (
	// ErrTooLong is about a client whose hello does not fit into the buffer.
	ErrTooLong = errors.New("the TLS client hello is too long")
	// ErrNoHello is about a client that does not begin with a hello, or with one that crypto/tls refuses. A TLS server should
	// send it the alert.
	ErrNoHello = errors.New("the connection does not begin with a TLS client hello")
)

// Read reads from a connection until the TLS client hello is complete, and returns the server name as crypto/tls reads it; it
// is empty where the client names none. The first n bytes of buffer are what was read, which may be more than the hello.
//
// The error is ErrTooLong, ErrNoHello, or that of the connection, such as os.ErrDeadlineExceeded. Nothing is written to the
// connection, and its deadlines stay as they are.
func Read(conn net.Conn, buffer []byte) (name string, n int, err error) {
	h := &hello{Conn: conn, buffer: buffer}
	// It fails in any case.
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

// readHello ends a handshake when the hello is there. It is shared: what crypto/tls prepares for each configuration costs
// more than a hello.
var readHello = &tls.Config{
	GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		h := info.Conn.(*hello)
		h.name, h.complete = info.ServerName, true
		return nil, errRead
	},
}

// hello is a connection to crypto/tls, which keeps what was read.
type hello struct {
	net.Conn
	buffer   []byte
	n        int
	name     string
	complete bool
	// err is what the connection failed with.
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

// Write drops the alert that ends the handshake.
func (*hello) Write(b []byte) (int, error) { return len(b), nil }
