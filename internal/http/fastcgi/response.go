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

// ErrInvalid is returned if the response violates the FastCGI or CGI specification.
var ErrInvalid = errors.New("the response is not valid FastCGI")

// errRefused is returned if the application rejects the request.
var errRefused = errors.New("the application rejects the request")

// maxHead is the maximum size, in bytes, of the headers of a response.
const maxHead = 1 << 20

// output reads the records of a connection and returns the content of the application's standard output. Standard error
// output, and records with another request ID, are discarded.
type output struct {
	from *bufio.Reader
	// left and padding are the numbers of content and padding bytes of the current record that have yet to be read.
	left, padding int
	ended         bool
}

// Read implements io.Reader. It returns an error other than io.EOF if the connection is closed before the end of the
// output.
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

// next reads the header of the next record. It skips records other than standard output.
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

// end reads the record that ends the request. The application's exit status is ignored.
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

// ReadResponse reads the headers of a response. The returned response's Body reads from the same reader; closing it
// does not close the reader.
func ReadResponse(from io.Reader, r *http.Request) (*http.Response, error) {
	head := &io.LimitedReader{R: &output{from: bufio.NewReader(from)}, N: maxHead}
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
		// io.EOF means that the application's output has ended before the end of the header. A connection that is
		// closed too early causes a different error.
		return nil, fmt.Errorf("%w: its header is incomplete", ErrInvalid)
	case err != nil && isSyntax(err):
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	case err != nil:
		return nil, err
	}
	head.N = math.MaxInt64
	return newResponse(http.Header(header), reader, r)
}

func isSyntax(err error) bool {
	var syntax textproto.ProtocolError
	return errors.As(err, &syntax)
}

func newResponse(header http.Header, body io.Reader, r *http.Request) (*http.Response, error) {
	status, err := statusOf(header)
	if err != nil {
		return nil, err
	}
	response := &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, ContentLength: -1, Request: r,
	}
	if response.ContentLength, err = lengthOf(header); err != nil {
		return nil, err
	}
	// These header fields of the application must not be sent to the client.
	header.Del("Status")
	header.Del("Transfer-Encoding")
	switch {
	case r.Method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified:
		response.Body = http.NoBody
	case response.ContentLength >= 0:
		response.Body = io.NopCloser(&sized{body, response.ContentLength})
	default:
		response.Body = io.NopCloser(body)
	}
	return response, nil
}

// statusOf returns the status in the Status field of a CGI response. If there is no such field, it returns 302 if there
// is a Location field, and 200 otherwise.
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
	// Statuses below 200 are invalid, because CGI has no interim responses and cannot switch protocols.
	if err != nil || len(digits) != len("200") || status < http.StatusOK {
		return 0, fmt.Errorf("%w: its status is %.20q", ErrInvalid, value)
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
		return 0, fmt.Errorf("%w: its Content-Length is %.20q", ErrInvalid, values)
	}
	return int64(length), nil
}

// sized is a response body with a known length. It ignores the data that follows after this length.
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
