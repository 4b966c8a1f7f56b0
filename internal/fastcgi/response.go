package fastcgi

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// ErrInvalid is for an answer that is no FastCGI, or that CGI has no meaning for.
var ErrInvalid = errors.New("the answer is no FastCGI")

// errRefused is for an application that does not serve the request at all.
var errRefused = errors.New("the application refuses the request")

// mostHead is the size of the largest head of an answer.
const mostHead = 1 << 20

// output is what an application writes to its standard output, out of the records of a connection. What it writes for the
// error log, and records that are about no request or another one, are passed over.
type output struct {
	from *bufio.Reader
	// left and padding are those of the record that is being read.
	left, padding int
	ended         bool
}

// Read is io.Reader. The end of the connection without the end of the output is an error.
func (o *output) Read(b []byte) (int, error) {
	for o.left == 0 && !o.ended {
		if err := o.next(); err != nil {
			return 0, err
		}
	}
	if o.ended {
		return 0, io.EOF
	}
	n, err := o.from.Read(b[:min(len(b), o.left)])
	o.left -= n
	return n, cut(err)
}

func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// next goes on to the next record with output in it.
func (o *output) next() error {
	if _, err := o.from.Discard(o.padding); err != nil {
		return cut(err)
	}
	o.padding = 0
	var header [headerLength]byte
	if _, err := io.ReadFull(o.from, header[:]); err != nil {
		return cut(err)
	}
	if header[0] != version {
		return fmt.Errorf("%w: a record has the version %d", ErrInvalid, header[0])
	}
	length := int(binary.BigEndian.Uint16(header[4:]))
	o.padding = int(header[6])
	if id := binary.BigEndian.Uint16(header[2:]); id == requestID {
		switch header[1] {
		case stdout:
			o.left, o.ended = length, length == 0
			return nil
		case endRequest:
			return o.end(length)
		}
	}
	_, err := o.from.Discard(length)
	return cut(err)
}

// end reads how the request ended. The status of the program itself means nothing here.
func (o *output) end(length int) error {
	var body [headerLength]byte
	if length < len(body) {
		return fmt.Errorf("%w: the last record has %d bytes", ErrInvalid, length)
	}
	if _, err := io.ReadFull(o.from, body[:]); err != nil {
		return cut(err)
	}
	if status := body[4]; status != 0 {
		return fmt.Errorf("%w: its protocol status is %d", errRefused, status)
	}
	o.ended = true
	return nil
}

// ReadResponse reads the head of an answer. Its body comes out of the same reader, and Close does not close that.
func ReadResponse(from io.Reader, r *http.Request) (*http.Response, error) {
	head := &io.LimitedReader{R: &output{from: bufio.NewReader(from)}, N: mostHead}
	reader := bufio.NewReader(head)
	if _, err := reader.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%w: it is empty", ErrInvalid)
		}
		return nil, err
	}
	header, err := textproto.NewReader(reader).ReadMIMEHeader()
	switch {
	case err != nil && head.N <= 0:
		return nil, fmt.Errorf("%w: its head is too large", ErrInvalid)
	case errors.Is(err, io.EOF):
		// The end of the output, and not that of the connection.
		return nil, fmt.Errorf("%w: its head has no end", ErrInvalid)
	case err != nil && isSyntax(err):
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	case err != nil:
		return nil, err
	}
	head.N = math.MaxInt64
	return response(http.Header(header), reader, r)
}

func isSyntax(err error) bool {
	var syntax textproto.ProtocolError
	return errors.As(err, &syntax)
}

func response(header http.Header, body io.Reader, r *http.Request) (*http.Response, error) {
	status, err := statusOf(header)
	if err != nil {
		return nil, err
	}
	answer := &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, ContentLength: -1, Request: r,
	}
	if answer.ContentLength, err = lengthOf(header); err != nil {
		return nil, err
	}
	// Neither is for an application to say.
	header.Del("Status")
	header.Del("Transfer-Encoding")
	switch {
	case r.Method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified:
		answer.Body = http.NoBody
	case answer.ContentLength >= 0:
		answer.Body = io.NopCloser(&sized{body, answer.ContentLength})
	default:
		answer.Body = io.NopCloser(body)
	}
	return answer, nil
}

// statusOf is CGI's: without a status, there is one for a Location and one for everything else.
func statusOf(header http.Header) (int, error) {
	value := header.Get("Status")
	if value == "" {
		if header.Get("Location") != "" {
			return http.StatusFound, nil
		}
		return http.StatusOK, nil
	}
	digits, _, _ := strings.Cut(value, " ")
	status, err := strconv.Atoi(digits)
	// An answer in between has no meaning in CGI, and a switch of protocols would be none.
	if err != nil || len(digits) != len("200") || status < http.StatusOK {
		return 0, fmt.Errorf("%w: it has the status %.20q", ErrInvalid, value)
	}
	return status, nil
}

func lengthOf(header http.Header) (int64, error) {
	values := header["Content-Length"]
	if len(values) == 0 {
		return -1, nil
	}
	length, err := strconv.ParseUint(values[0], 10, 63)
	if err != nil || len(values) > 1 {
		return 0, fmt.Errorf("%w: it has the length %.20q", ErrInvalid, values)
	}
	return int64(length), nil
}

// sized is a body of a known length. What comes behind it is of no interest.
type sized struct {
	from io.Reader
	left int64
}

func (s *sized) Read(b []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.from.Read(b[:min(int64(len(b)), s.left)])
	s.left -= int64(n)
	if s.left > 0 {
		err = cut(err)
	}
	return n, err
}
