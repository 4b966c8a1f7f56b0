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

	"github.com/k8singress/k8singress/internal/ir"
)

// greeting returns the PROXY protocol header for the endpoint of a client's connection; none for no version. Where one
// address is of IPv4 and the other one of IPv6, both are written as IPv6.
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

// plain is an IP address without a zone, which means nothing to another host.
func plain(address net.Addr) net.Addr {
	if tcp, ok := address.(*net.TCPAddr); ok && tcp.Zone != "" {
		return &net.TCPAddr{IP: tcp.IP, Port: tcp.Port}
	}
	return address
}

// extras are the name that the client has asked for, if it is known, and an identifier of the connection.
func extras(cx *layer4.Connection) []proxyproto.TLV {
	var all []proxyproto.TLV
	if name := serverName(cx); name != "" {
		all = append(all, proxyproto.TLV{Type: proxyproto.PP2_TYPE_AUTHORITY, Value: []byte(name)})
	}
	return append(all, proxyproto.TLV{Type: proxyproto.PP2_TYPE_UNIQUE_ID, Value: []byte(uniqueID())})
}

// serverName is the name of the ClientHello: of TLS that ended here, or that a matcher has looked at.
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

// uniqueID is of this connection among those of all processes.
func uniqueID() string { return processID + "-" + strconv.FormatUint(serial.Add(1), 16) }
