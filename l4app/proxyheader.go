package l4app

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"

	"github.com/mholt/caddy-l4/layer4"
	"github.com/pires/go-proxyproto"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// greeting returns the PROXY protocol header for a client's connection, which is sent to the endpoint before any other
// data. It returns nil if version is empty. If the client's address is IPv4 and the server's address is IPv6, or vice
// versa, both are written as IPv6 addresses.
func greeting(version ir.ProxyVersion, cx *layer4.Connection) ([]byte, error) {
	if version == "" {
		return nil, nil
	}
	number := byte(1)
	if version == ir.ProxyV2 {
		number = 2
	}
	header := proxyproto.HeaderProxyFromAddrs(number, plain(cx.RemoteAddr()), plain(cx.LocalAddr()))
	if version == ir.ProxyV2 {
		if err := header.SetTLVs(extras(cx)); err != nil {
			return nil, fmt.Errorf("making the PROXY protocol header: %w", err)
		}
	}
	data, err := header.Format()
	if err != nil {
		return nil, fmt.Errorf("making the PROXY protocol header: %w", err)
	}
	return data, nil
}

// plain removes the IPv6 zone from a TCP address, because a zone has no meaning on another host.
func plain(address net.Addr) net.Addr {
	if tcp, ok := address.(*net.TCPAddr); ok && tcp.Zone != "" {
		return &net.TCPAddr{IP: tcp.IP, Port: tcp.Port}
	}
	return address
}

// extras returns the additional fields (TLVs) of a version 2 header: the server name that the client has requested, if
// it is known, and a unique ID of the connection.
func extras(cx *layer4.Connection) []proxyproto.TLV {
	var all []proxyproto.TLV
	if name := serverName(cx); name != "" {
		all = append(all, proxyproto.TLV{Type: proxyproto.PP2_TYPE_AUTHORITY, Value: []byte(name)})
	}
	return append(all, proxyproto.TLV{Type: proxyproto.PP2_TYPE_UNIQUE_ID, Value: []byte(uniqueID())})
}

// serverName returns the server name that the client has sent in its ClientHello. It returns "" if neither this process
// nor a matcher of caddy-l4 has read the ClientHello.
func serverName(cx *layer4.Connection) string {
	if secure, ok := cx.Conn.(*tls.Conn); ok {
		return secure.ConnectionState().ServerName
	}
	name, _ := cx.Replacer().GetString("l4.tls.server_name")
	return name
}

var (
	processID = func() string {
		var random [12]byte
		_, _ = rand.Read(random[:]) // It never fails.
		return hex.EncodeToString(random[:])
	}()
	serial atomic.Uint64
)

// uniqueID returns a new ID for a connection. No other connection of this or another process has the same ID.
func uniqueID() string { return processID + "-" + strconv.FormatUint(serial.Add(1), 16) }
