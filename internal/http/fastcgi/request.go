// Package fastcgi implements the web server's side of the FastCGI responder role. Each connection carries one request;
// the application closes the connection after its response. The package sets no timeouts: the caller must set them on
// the connection.
package fastcgi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Param is one parameter of a request. The application sees it as a CGI environment variable.
type Param struct{ Name, Value string }

// The record types, the responder role, and the request ID. The ID is constant because each connection carries only one
// request.
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
	// maxContent is the maximum size, in bytes, of the content of a record. It is a multiple of eight, as the FastCGI
	// specification recommends.
	maxContent = 65528
	// maxParams is the maximum total size of all parameters in bytes. A client may send about 1 MB of headers.
	maxParams = 4 << 20
	// shortLength is the maximum length in bytes of a name or value whose length is encoded in one byte.
	shortLength = 127
	longLength  = 1 << 31
)

// ErrTooLarge is returned if the parameters of a request exceed maxParams.
var ErrTooLarge = errors.New("the parameters of the request are too large")

// WriteParams writes the start of a request: all records except the body.
func WriteParams(w io.Writer, list []Param) error {
	size := 0
	for _, p := range list {
		size += len(p.Name) + len(p.Value) + headerLength
	}
	if size > maxParams {
		return fmt.Errorf("%w: the parameters have %d bytes, and the limit is %d", ErrTooLarge, size, maxParams)
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

// appendRecord appends a record to a buffer. It adds no padding, because padding is optional.
func appendRecord(to []byte, kind byte, content []byte) []byte {
	to = append(to, version, kind, 0, requestID)
	to = binary.BigEndian.AppendUint16(to, uint16(len(content)))
	return append(append(to, 0, 0), content...)
}

// ErrBody wraps errors from reading the request body, so that callers can distinguish them from errors of the
// connection to the application.
var ErrBody = errors.New("reading the request body")

// WriteBody writes the request body and the record that ends it. If body is nil, the request body is empty.
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
