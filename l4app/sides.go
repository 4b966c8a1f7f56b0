package l4app

import (
	"io"
	"net"

	"github.com/mholt/caddy-l4/layer4"
)

// side is one end of a link.
type side struct {
	net.Conn
	// socket is what is closed to end the connection, whatever is spoken on it.
	socket io.Closer
}

func sideOf(conn net.Conn) side { return side{conn, socketOf(conn)} }

// clientOf returns the client's side of a connection, and what was read of it while caddy-l4 looked for a route and with
// the headers in front. It is the socket itself if nothing is in between, so that the bytes do not pass through this
// process.
func clientOf(cx *layer4.Connection) (side, []byte, error) {
	ahead := make([]byte, len(cx.MatchingBytes()))
	if _, err := io.ReadFull(cx, ahead); err != nil {
		return side{}, nil, err
	}
	if h, ok := cx.Conn.(*headed); ok {
		return sideOf(h.Conn), append(ahead, h.ahead...), nil
	}
	return sideOf(cx.Conn), ahead, nil
}

// socketOf returns what is below all layers.
func socketOf(conn net.Conn) io.Closer {
	for {
		switch layer := conn.(type) {
		case *layer4.Connection:
			conn = layer.Conn
		case *headed:
			conn = layer.Conn
		case interface{ NetConn() net.Conn }:
			conn = layer.NetConn()
		case interface{ Raw() net.Conn }:
			conn = layer.Raw()
		default:
			return conn
		}
	}
}

// closeWrite tells a side that the other one has said all. One that cannot be told is closed.
func closeWrite(conn net.Conn) error {
	switch conn := conn.(type) {
	case interface{ CloseWrite() error }:
		return conn.CloseWrite()
	case *layer4.Connection:
		return closeWrite(conn.Conn)
	case interface{ Raw() net.Conn }:
		return closeWrite(conn.Raw())
	}
	return conn.Close()
}
