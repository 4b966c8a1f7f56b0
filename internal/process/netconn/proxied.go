package netconn

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/pires/go-proxyproto"
)

// Proxied is a connection whose peer, such as a load balancer, must first send a PROXY protocol header of version 1 or
// 2. RemoteAddr and LocalAddr return the addresses in the header. If the header contains no TCP addresses, as in health
// checks (LOCAL, UNKNOWN), they return the addresses of the connection below. The function Strip returns the connection
// below, so that the kernel can copy the bytes after the header.
//
// The methods ReadHeader, Read, Write, RemoteAddr and LocalAddr wait for the header. If the header is invalid or does
// not arrive in time, Read and Write return the error of ReadHeader, and the caller must close the connection.
type Proxied struct {
	replayed
	timeout time.Duration
	failed  func(error)
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

// OnFailure makes ReadHeader call failed if the header is invalid or does not arrive in time. failed is not called for
// a connection that ends before any data, because load balancers check ports in this way. OnFailure must be called
// before all other methods.
func (p *Proxied) OnFailure(failed func(error)) { p.failed = failed }

// ReadHeader reads the header, if it was not read yet. It returns io.EOF if the peer has closed the connection without
// sending any data.
func (p *Proxied) ReadHeader() error {
	p.once.Do(func() {
		var begun bool
		begun, p.err = p.readHeader()
		isLate := errors.Is(p.err, os.ErrDeadlineExceeded)
		if p.err != nil && p.failed != nil && (begun || isLate) && !errors.Is(p.err, net.ErrClosed) {
			p.failed(p.err)
		}
	})
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
	// usualHeader is the size in bytes of the buffer for a header, which is larger than most headers. It must be larger
	// than longestLine.
	usualHeader = 256
	// fixedPart is the length in bytes of the first part of a version 2 header: the signature, the command, the address
	// family, and the length of the rest.
	fixedPart = 16
	// longestLine is the maximum length of a version 1 header in bytes.
	longestLine = 107
)

// readHeader reads the header, which may arrive in several packets, and keeps the bytes after it for Read. begun
// reports whether any data has arrived.
func (p *Proxied) readHeader() (begun bool, err error) {
	if err := p.SetReadDeadline(time.Now().Add(p.timeout)); err != nil {
		return false, err
	}
	reader := bufio.NewReaderSize(p.Conn, usualHeader)
	if _, err := reader.Peek(1); err != nil {
		return false, err
	}
	if err := p.parse(reader); errors.Is(err, io.EOF) {
		return true, io.ErrUnexpectedEOF
	} else if err != nil {
		return true, err
	}
	if n := reader.Buffered(); n > 0 {
		p.ahead, _ = reader.Peek(n) // Peek only fails if it has to read.
	}
	return true, p.SetReadDeadline(time.Time{})
}

// unspecified is the start of a version 2 header without addresses: the command PROXY with the address family
// AF_UNSPEC. Package proxyproto rejects it.
var unspecified = append(bytes.Clone(proxyproto.SIGV2), 0x21, 0)

// parse reads a PROXY protocol header from reader, and stores the TCP addresses of the header in p. The first byte must
// have arrived already.
func (p *Proxied) parse(reader *bufio.Reader) error {
	start, err := reader.Peek(1)
	// Package proxyproto rejects a version 1 header of which only a part has arrived, so wait for the end of the line.
	for err == nil && bytes.HasPrefix(proxyproto.SIGV1, start[:min(len(start), len(proxyproto.SIGV1))]) &&
		start[len(start)-1] != '\n' && len(start) < longestLine {
		start, err = reader.Peek(len(start) + 1)
	}
	if err == nil && start[0] == proxyproto.SIGV2[0] {
		start, err = reader.Peek(fixedPart)
	}
	if err != nil {
		return err
	}
	if bytes.HasPrefix(start, unspecified) {
		_, err := reader.Discard(fixedPart + int(binary.BigEndian.Uint16(start[fixedPart-2:])))
		return err
	}
	header, err := proxyproto.Read(reader)
	if err != nil {
		return err
	}
	if source, destination, ok := header.TCPAddrs(); ok && header.Command.IsProxy() {
		p.source, p.destination = source, destination
	}
	return nil
}
