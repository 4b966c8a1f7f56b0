package netconn

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/k8singress/k8singress/internal/model/pools"
)

// Proxied is a connection whose peer, such as a load balancer, must first send a PROXY protocol header of version 1 or
// 2. Its addresses are the addresses in the header. If the header contains no TCP addresses, as in health checks
// (LOCAL, UNKNOWN), its addresses are the addresses of the connection below. Strip returns that connection, so that the
// kernel can copy the bytes after the header.
//
// The methods ReadHeader, Read, Write, RemoteAddr and LocalAddr wait for the header. If the header is invalid or does
// not arrive in time, Read and Write return the error of ReadHeader, and the caller must close the connection.
type Proxied struct {
	replayed
	timeout time.Duration
	once    sync.Once
	err     error
	// source is the address of the client in the header. destination is the address in the header to which the client
	// has connected. Both are nil if the header contains no TCP addresses.
	source, destination net.Addr
}

// NewProxied returns a connection that reads a PROXY protocol header from conn. timeout is the maximum time for
// receiving the header, from the first call of a method that waits for it. Afterwards, conn has no read deadline.
func NewProxied(conn net.Conn, timeout time.Duration) *Proxied {
	return &Proxied{replayed: replayed{Conn: conn}, timeout: timeout}
}

// ReadHeader reads the header, if it was not read yet. It returns io.EOF if the peer has closed the connection without
// sending any data.
func (p *Proxied) ReadHeader() error {
	p.once.Do(func() { p.err = p.readHeader() })
	return p.err
}

func (p *Proxied) Read(b []byte) (int, error) {
	if err := p.ReadHeader(); err != nil {
		return 0, err
	}
	return p.replayed.Read(b)
}

func (p *Proxied) Write(b []byte) (int, error) {
	if err := p.ReadHeader(); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

// RemoteAddr returns the address of the client from the header.
func (p *Proxied) RemoteAddr() net.Addr {
	if p.ReadHeader() != nil || p.source == nil {
		return p.Conn.RemoteAddr()
	}
	return p.source
}

// LocalAddr returns the address to which the client has connected, from the header.
func (p *Proxied) LocalAddr() net.Addr {
	if p.ReadHeader() != nil || p.destination == nil {
		return p.Conn.LocalAddr()
	}
	return p.destination
}

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

// readHeader reads the header, which may arrive in several packets, and keeps the bytes after it for Read.
func (p *Proxied) readHeader() error {
	if err := p.SetReadDeadline(time.Now().Add(p.timeout)); err != nil {
		return err
	}
	for data := make([]byte, 0, usualHeader); ; {
		length, err := headerLength(data)
		if err != nil {
			return err
		}
		if length > 0 && len(data) >= length {
			if len(data) > length {
				p.ahead = data[length:]
			}
			return errors.Join(p.parse(data[:length]), p.SetReadDeadline(time.Time{}))
		}
		if len(data) == cap(data) {
			grown := make([]byte, len(data), max(length, 2*cap(data)))
			copy(grown, data)
			data = grown
		}
		n, err := p.Conn.Read(data[len(data):cap(data)])
		if data = data[:len(data)+n]; n > 0 || err == nil {
			continue
		}
		if len(data) > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
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
// address family AF_UNSPEC. Package proxyproto rejects it.
var unspecified = []byte{0x21, 0}

// parser reads a header that was already received with package proxyproto, which needs a bufio.Reader.
type parser struct {
	data     bytes.Reader
	buffered *bufio.Reader
}

var parsers = pools.New("netconn: parsers", func(p *parser) { p.buffered = bufio.NewReader(&p.data) },
	func(p *parser) { p.data.Reset(nil) })

// parse stores the TCP addresses in a header.
func (p *Proxied) parse(data []byte) error {
	if data[0] == proxyproto.SIGV2[0] && bytes.Equal(data[fixedPart-4:fixedPart-2], unspecified) {
		return nil
	}
	pooled := parsers.Get()
	reader := pooled.Value()
	reader.data.Reset(data)
	reader.buffered.Reset(&reader.data)
	header, err := proxyproto.Read(reader.buffered)
	pooled.Release()
	if err != nil {
		return err
	}
	if source, destination, ok := header.TCPAddrs(); ok && header.Command.IsProxy() {
		p.source, p.destination = source, destination
	}
	return nil
}
