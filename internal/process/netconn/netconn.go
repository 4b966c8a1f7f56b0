// Package netconn wraps and unwraps network connections. A connection of a client has several layers, such as TLS above
// a PROXY protocol header above a TCP socket, and each of them hides the methods of the layer below. The functions of
// this package find these methods.
package netconn

import (
	"errors"
	"net"
	"net/netip"
)

// Below returns the connection that conn wraps, such as the connection below TLS. It returns nil if conn does not wrap
// a connection, or if the type of conn has neither of the usual methods NetConn and Raw.
func Below(conn net.Conn) net.Conn {
	switch layer := conn.(type) {
	case interface{ NetConn() net.Conn }:
		return layer.NetConn()
	case interface{ Raw() net.Conn }:
		return layer.Raw()
	}
	return nil
}

// Find returns the first layer of conn that has the type T, starting with conn itself. T may be an interface. Find
// returns false if no layer has this type.
func Find[T any](conn net.Conn) (layer T, ok bool) {
	for conn != nil {
		if layer, ok = conn.(T); ok {
			return layer, true
		}
		conn = Below(conn)
	}
	return layer, false
}

// CloseWrite closes the write side of a connection: its peer reads the end of the data, but can still send data. A
// server does this before it closes a connection on which the client may still be sending, because otherwise the client
// might not receive the end of the response. CloseWrite returns errors.ErrUnsupported if the connection has no layer
// with a method CloseWrite.
func CloseWrite(conn net.Conn) error {
	if half, ok := Find[interface{ CloseWrite() error }](conn); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// AddrPort returns the IP address and port of a TCP or UDP address. It returns the zero AddrPort for any other address,
// such as the address of a Unix socket.
func AddrPort(address net.Addr) netip.AddrPort {
	switch address := address.(type) {
	case *net.TCPAddr:
		return address.AddrPort()
	case *net.UDPAddr:
		return address.AddrPort()
	}
	return netip.AddrPort{}
}
