// Package fastcgi implements the web server's side of FastCGI for responders. It sends one request on a connection, and
// the application closes the connection after its response. The package only reads and writes the readers and writers
// that it is given; their owner sets the timeouts.
package fastcgi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Param is one parameter of a request, which is a variable of the CGI environment.
type Param struct{ Name, Value string }

// Record types, the role, and the request ID. A connection carries a single request, so the ID is constant.
const (
	version      = 1
	headerLength = 8
	requestID    = 1

	beginRequest = 1
	endRequest   = 3
	params       = 4
	stdin        = 5
	stdout       = 6

	responder = 1
)

const (
	// maxContent is the maximum size in bytes of the content of a record. It is a multiple of eight, as the
	// specification recommends.
	maxContent = 65528
	// maxParams is the maximum size in bytes of all parameters. A client may send about a megabyte of headers.
	maxParams = 4 << 20
	// shortLength is the maximum length in bytes of a name or value whose length is encoded in one byte.
	shortLength = 127
	longLength  = 1 << 31
)

// ErrTooLarge is returned for parameters that are too large for any application.
var ErrTooLarge = errors.New("the parameters of the request are too large")

// WriteParams writes a request without its body.
func WriteParams(w io.Writer, list []Param) error {
	size := 0
	for _, p := range list {
		size += len(p.Name) + len(p.Value) + headerLength
	}
	if size > maxParams {
		return fmt.Errorf("%w: they have %d bytes, and the limit is %d", ErrTooLarge, size, maxParams)
	}
	pairs := make([]byte, 0, size)
	for _, p := range list {
		pairs = appendLength(appendLength(pairs, len(p.Name)), len(p.Value))
		pairs = append(append(pairs, p.Name...), p.Value...)
	}
	whole := appendRecord(make([]byte, 0, size+4*headerLength), beginRequest, []byte{0, responder, 0, 0, 0, 0, 0, 0})
	for len(pairs) > 0 {
		n := min(len(pairs), maxContent)
		whole = appendRecord(whole, params, pairs[:n])
		pairs = pairs[n:]
	}
	_, err := w.Write(appendRecord(whole, params, nil))
	return err
}

func appendLength(to []byte, n int) []byte {
	if n <= shortLength {
		return append(to, byte(n))
	}
	return binary.BigEndian.AppendUint32(to, uint32(n)|longLength)
}

// appendRecord appends a record. It adds no padding, because applications accept records of any length.
func appendRecord(to []byte, kind byte, content []byte) []byte {
	to = append(to, version, kind, 0, requestID)
	to = binary.BigEndian.AppendUint16(to, uint16(len(content)))
	return append(append(to, 0, 0), content...)
}

// ErrBody wraps errors of the body that WriteBody reads, to distinguish them from errors of the connection.
var ErrBody = errors.New("reading the request body")

// WriteBody writes the body and its end. A nil body is empty.
func WriteBody(w io.Writer, body io.Reader) error {
	const piece = 32 << 10
	record := make([]byte, headerLength+piece)
	for body != nil {
		n, err := body.Read(record[headerLength:])
		if n > 0 {
			if _, err := w.Write(appendRecord(record[:0], stdin, record[headerLength:headerLength+n])); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrBody, err)
		}
	}
	_, err := w.Write(appendRecord(record[:0], stdin, nil))
	return err
}
