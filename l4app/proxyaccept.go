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

	"github.com/k8singress/k8singress/internal/accesslog"
	"github.com/k8singress/k8singress/internal/ir"
	peers "github.com/k8singress/k8singress/internal/realip"
)

func init() { caddy.RegisterModule(new(ProxyAccept)) }

// ProxyAccept reads the PROXY protocol header (version 1 or 2) that each connection has to begin with; the address in it
// is the client's from then on. Connections without one are closed, and so are those of peers that are not trusted. A
// header that names no TCP client, as those of health checks (LOCAL, UNKNOWN), leaves the address of the peer. What follows
// the header is moved in the kernel where the next handler can do that, which it cannot behind caddy-l4's own handler.
type ProxyAccept struct {
	// Trusted are the networks, as CIDRs or addresses, whose word counts. Default: everybody.
	Trusted []string `json:"trusted,omitempty"`
	// Timeout is how long the header may take. Default: 5s.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	trusted *peers.Policy
	account *account
	log     *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (*ProxyAccept) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "layer4.handlers.k8singress_proxy_protocol", New: func() caddy.Module { return new(ProxyAccept) }}
}

// Provision reads the networks.
func (p *ProxyAccept) Provision(ctx caddy.Context) error {
	for _, text := range p.Trusted {
		if _, err := netip.ParsePrefix(text); err == nil {
			continue
		}
		if _, err := netip.ParseAddr(text); err != nil {
			return fmt.Errorf("trusted %q is no network: write it as 192.0.2.0/24", text)
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

// Handle reads the header.
func (p *ProxyAccept) Handle(cx *layer4.Connection, next layer4.Handler) error {
	peer := zap.Stringer("client", cx.RemoteAddr())
	if !p.trusted.Trusts(addressOf(cx.RemoteAddr()).Addr()) {
		notedOf(cx).is(accesslog.StreamForbidden)
		p.account.warn(p.log, notTrusted, "closing a connection of a peer that may not send a PROXY protocol header", peer)
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
			// Load balancers look in like that.
			return nil
		}
		p.account.warn(p.log, noHeader, "closing a connection without the PROXY protocol header that is demanded", peer, zap.Error(err))
		return nil
	}
	notedOf(cx).comesFrom(conn.RemoteAddr())
	return next.Handle(cx.Wrap(conn))
}

// addressOf returns the zero value for an address that is not of IP.
func addressOf(address net.Addr) netip.AddrPort {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return tcp.AddrPort()
	}
	parsed, _ := netip.ParseAddrPort(address.String())
	return parsed
}

// headed is a connection that began with a header.
type headed struct {
	net.Conn
	// source and destination are what the header says.
	source, destination net.Addr
	// ahead was read with the header and comes after it.
	ahead []byte
}

// Read returns what came with the header first.
func (h *headed) Read(b []byte) (int, error) {
	if len(h.ahead) > 0 {
		n := copy(b, h.ahead)
		h.ahead = h.ahead[n:]
		return n, nil
	}
	return h.Conn.Read(b)
}

// RemoteAddr is the address of the client.
func (h *headed) RemoteAddr() net.Addr { return h.source }

// LocalAddr is the address that the client has asked for.
func (h *headed) LocalAddr() net.Addr { return h.destination }

// CloseWrite tells the client that nothing more comes.
func (h *headed) CloseWrite() error { return closeWrite(h.Conn) }

const (
	// usualHeader is enough for most headers, with something of what comes after them.
	usualHeader = 512
	// fixedPart is what each header of version 2 begins with: signature, command, family and the length of the rest.
	fixedPart = 16
	// longestLine is the longest header of version 1.
	longestLine = 107
)

// readHeader reads the header of a connection, however small the pieces are in which it comes. The error is io.EOF if the peer
// closes the connection without a word.
func readHeader(cx *layer4.Connection) (net.Conn, error) {
	// All that caddy-l4 has read, so that it keeps nothing which would come before the rest.
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

// headerLength returns how long the header is that data begins with. Zero is that more has to be read to know.
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

// begins says whether data begins with a signature, or may do so with more of it.
func begins(data, signature []byte) bool {
	n := min(len(data), len(signature))
	return bytes.Equal(data[:n], signature[:n])
}

// unspecified is a header of version 2 for a connection that is proxied, of which nothing is said.
var unspecified = []byte{0x21, 0}

func newHeaded(conn net.Conn, data []byte, length int) (net.Conn, error) {
	h := &headed{Conn: conn, source: conn.RemoteAddr(), destination: conn.LocalAddr(), ahead: data[length:]}
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
