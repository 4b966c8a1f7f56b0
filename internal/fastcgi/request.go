// Package fastcgi speaks FastCGI as a web server does, in the role of a responder's client: one request on a connection, which
// the application closes behind its answer. It does no IO but on what it is given, and whoever gives it has the time limits.
package fastcgi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Param is one parameter of a request: a line of CGI's environment.
type Param struct{ Name, Value string }

// The types of records, the role, and the one id that a connection for one request needs.
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
	// mostContent is the content of a record, in whole units of eight bytes as the specification recommends.
	mostContent = 65528
	// mostParams is the size of all parameters together. A client may send headers of about a megabyte.
	mostParams = 4 << 20
	// shortLength is the longest name or value whose length is written in one byte.
	shortLength = 127
	longLength  = 1 << 31
)

// ErrTooLarge is for parameters that no application takes.
var ErrTooLarge = errors.New("the parameters of the request are too large")

// WriteParams writes the beginning of a request, all but its body.
func WriteParams(w io.Writer, list []Param) error {
	size := 0
	for _, p := range list {
		size += len(p.Name) + len(p.Value) + headerLength
	}
	if size > mostParams {
		return fmt.Errorf("%w: they have %d bytes, and %d are allowed", ErrTooLarge, size, mostParams)
	}
	pairs := make([]byte, 0, size)
	for _, p := range list {
		pairs = appendLength(appendLength(pairs, len(p.Name)), len(p.Value))
		pairs = append(append(pairs, p.Name...), p.Value...)
	}
	whole := appendRecord(make([]byte, 0, size+4*headerLength), beginRequest, []byte{0, responder, 0, 0, 0, 0, 0, 0})
	for len(pairs) > 0 {
		n := min(len(pairs), mostContent)
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

// appendRecord needs no padding: applications take records of any length.
func appendRecord(to []byte, kind byte, content []byte) []byte {
	to = append(to, version, kind, 0, requestID)
	to = binary.BigEndian.AppendUint16(to, uint16(len(content)))
	return append(append(to, 0, 0), content...)
}

// ErrBody wraps an error of the body that WriteBody reads, rather than one of the connection.
var ErrBody = errors.New("reading the body of the request")

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
