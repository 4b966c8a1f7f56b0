package l4app

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/mholt/caddy-l4/layer4"
	"github.com/pires/go-proxyproto"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/accesslog"
	peers "github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/netconn"
)

func init() { caddy.RegisterModule(new(ProxyAccept)) }

// ProxyAccept reads the PROXY protocol header (version 1 or 2) at the start of each connection. The next handlers get
// the address in the header as the client's address. A connection is closed if it has no header or its peer is not
// trusted. If the header contains no TCP addresses, as in health checks (LOCAL, UNKNOWN), the peer's address is kept.
// Unlike with caddy-l4's own handler, the bytes after the header can be moved by the kernel, without copying them into
// this process.
type ProxyAccept struct {
	// Trusted lists the networks or IP addresses of peers whose PROXY protocol headers are trusted. Default: all
	// networks.
	Trusted []string `json:"trusted,omitempty"`
	// Timeout is the maximum time for receiving the header. Default: 5s.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	trusted *peers.Policy
	account *account
	log     *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (*ProxyAccept) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "layer4.handlers.k8singress_proxy_protocol",
		New: func() caddy.Module { return new(ProxyAccept) }}
}

// Provision validates the trusted networks and sets the default timeout.
func (p *ProxyAccept) Provision(ctx caddy.Context) error {
	for _, text := range p.Trusted {
		if _, err := netip.ParsePrefix(text); err == nil {
			continue
		}
		if _, err := netip.ParseAddr(text); err != nil {
			return fmt.Errorf("trusted %q is not a network: write it as 192.0.2.0/24", text)
		}
	}
	if p.Timeout <= 0 {
		p.Timeout = caddy.Duration(ir.ProxyTimeout)
	}
	p.trusted = peers.New(ir.Clients{Trusted: p.Trusted})
	p.log, p.account = ctx.Logger(), new(account)
	if s := scopeOf(ctx); s != nil {
		p.log, p.account = s.log, s.account
	}
	return nil
}

// Handle reads the PROXY protocol header, and calls the next handler with a connection that has the client's address.
func (p *ProxyAccept) Handle(cx *layer4.Connection, next layer4.Handler) error {
	peer := zap.Stringer("client", cx.RemoteAddr())
	if !p.trusted.Trusts(netconn.AddrPort(cx.RemoteAddr()).Addr()) {
		recordOf(cx).setStatus(accesslog.StreamForbidden)
		p.account.warn(p.log, notTrusted,
			"closing a connection: its peer is not trusted to send a PROXY protocol header", peer)
		return nil
	}
	if err := cx.SetReadDeadline(time.Now().Add(time.Duration(p.Timeout))); err != nil {
		return err
	}
	conn, err := readHeader(cx)
	if err == nil {
		err = cx.SetReadDeadline(time.Time{})
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			// This is not an error: load balancers check the port by opening a connection without sending any data.
			return nil
		}
		p.account.warn(p.log, noHeader, "closing a connection: it lacks the required PROXY protocol header", peer,
			zap.Error(err))
		return nil
	}
	recordOf(cx).setClient(conn.RemoteAddr())
	return next.Handle(cx.Wrap(conn))
}

// proxiedConn is a connection whose PROXY protocol header has already been read. It has the addresses in the header.
type proxiedConn struct {
	net.Conn
	// source is the client's address in the header. destination is the address in the header to which the client has
	// connected.
	source, destination net.Addr
	// ahead holds the bytes that follow the header and were read together with it.
	ahead []byte
}

// Read returns the bytes in ahead first, and then reads from the connection.
func (h *proxiedConn) Read(b []byte) (int, error) {
	if len(h.ahead) > 0 {
		n := copy(b, h.ahead)
		h.ahead = h.ahead[n:]
		return n, nil
	}
	return h.Conn.Read(b)
}

// RemoteAddr returns the address of the client from the header.
func (h *proxiedConn) RemoteAddr() net.Addr { return h.source }

// LocalAddr returns the address to which the client has connected, from the header.
func (h *proxiedConn) LocalAddr() net.Addr { return h.destination }

// NetConn returns the wrapped connection.
func (h *proxiedConn) NetConn() net.Conn { return h.Conn }

const (
	// usualHeader is the initial size in bytes of the buffer for a header. It is enough for most headers, and for some
	// of the data after the header.
	usualHeader = 512
	// fixedPart is the length in bytes of the first part of a version 2 header: the signature, the command, the address
	// family, and the length of the rest.
	fixedPart = 16
	// longestLine is the maximum length of a version 1 header in bytes.
	longestLine = 107
)

// readHeader reads the PROXY protocol header of a connection, which may arrive in several packets. It returns io.EOF if
// the peer closes the connection without sending any data.
func readHeader(cx *layer4.Connection) (net.Conn, error) {
	// First read the bytes that caddy-l4 has buffered, because they come before the bytes that are still in the socket.
	data := make([]byte, len(cx.MatchingBytes()), max(usualHeader, len(cx.MatchingBytes())))
	if _, err := io.ReadFull(cx, data); err != nil {
		return nil, err
	}
	for {
		length, err := headerLength(data)
		if err != nil {
			return nil, err
		}
		if length > 0 && len(data) >= length {
			return newHeaded(cx.Conn, data, length)
		}
		if len(data) == cap(data) {
			grown := make([]byte, len(data), max(length, 2*cap(data)))
			copy(grown, data)
			data = grown
		}
		n, err := cx.Read(data[len(data):cap(data)])
		if data = data[:len(data)+n]; n > 0 || err == nil {
			continue
		}
		if len(data) > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
}

// headerLength returns the length in bytes of the PROXY protocol header at the start of data. It returns zero if more
// data is needed to determine the length.
func headerLength(data []byte) (int, error) {
	switch {
	case begins(data, proxyproto.SIGV2):
		if len(data) < fixedPart {
			return 0, nil
		}
		length := int(binary.BigEndian.Uint16(data[fixedPart-2:]))
		if length > int(proxyproto.MaxV2HeaderSize) {
			return 0, fmt.Errorf("%w: %d bytes are too many", proxyproto.ErrInvalidLength, length)
		}
		return fixedPart + length, nil
	case begins(data, proxyproto.SIGV1):
		end := bytes.IndexByte(data[:min(len(data), longestLine)], '\n')
		if end < 0 && len(data) >= longestLine {
			return 0, proxyproto.ErrVersion1HeaderTooLong
		}
		return end + 1, nil
	}
	return 0, proxyproto.ErrNoProxyProtocol
}

// begins reports whether data starts with the signature. It also returns true if data is too short, but matches the
// start of the signature.
func begins(data, signature []byte) bool {
	n := min(len(data), len(signature))
	return bytes.Equal(data[:n], signature[:n])
}

// unspecified is the part of a version 2 header that means that there are no addresses: the command PROXY with the
// address family AF_UNSPEC.
var unspecified = []byte{0x21, 0}

func newHeaded(conn net.Conn, data []byte, length int) (net.Conn, error) {
	h := &proxiedConn{Conn: conn, source: conn.RemoteAddr(), destination: conn.LocalAddr(), ahead: data[length:]}
	if data[0] == proxyproto.SIGV2[0] && bytes.Equal(data[fixedPart-4:fixedPart-2], unspecified) {
		return h, nil
	}
	header, err := proxyproto.Read(bufio.NewReaderSize(bytes.NewReader(data[:length]), length))
	if err != nil {
		return nil, err
	}
	source, destination, ok := header.TCPAddrs()
	if ok && header.Command.IsProxy() {
		h.source, h.destination = source, destination
	}
	return h, nil
}

var (
	_ caddy.Provisioner  = (*ProxyAccept)(nil)
	_ layer4.NextHandler = (*ProxyAccept)(nil)
)
