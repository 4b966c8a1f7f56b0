package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// hopByHop are the headers of an answer that end here, by RFC 9110 7.6.1.
var hopByHop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// answer is the final answer of an endpoint, of which the head has been read.
type answer struct {
	status int
	// length is that of the body, less than zero if it is not known. body is nil if all of it is in the buffer of reader.
	length int64
	body   io.Reader
	reader *bufio.Reader
	// head has the headers, unless long is there: the answer as net/http has read it.
	head *head
	long *http.Response
}

// contentType is what the endpoint says that the body is.
func (a *answer) contentType() string {
	if a.long != nil {
		return a.long.Header.Get("Content-Type")
	}
	return a.head.contentType()
}

// readHead reads the head of the answer. Interim answers are passed on, as RFC 9110 15.2 demands; all heads together have
// one limit.
func (c *conn) readHead(w http.ResponseWriter, r *http.Request) (answer, error) {
	if _, err := c.reader.Peek(1); err != nil {
		return answer{}, c.readFailed(err)
	}
	if r.Method != http.MethodHead && c.head.read(c.reader) {
		c.countsHead = false
		return c.short(), nil
	}
	for {
		response, err := http.ReadResponse(c.reader, r) //nolint:bodyclose // It is read to its end, or its connection is closed.
		if err != nil {
			return answer{}, c.readFailed(err)
		}
		switch {
		case response.StatusCode < http.StatusContinue:
			return answer{}, fmt.Errorf("%w: it has the status %03d", errInvalid, response.StatusCode)
		case response.StatusCode == http.StatusSwitchingProtocols:
			return answer{}, errSwitches
		case response.StatusCode >= http.StatusOK:
			c.countsHead = false
			return answer{status: response.StatusCode, length: response.ContentLength, body: response.Body, long: response}, nil
		}
		passInterim(w, response)
	}
}

// short is the answer behind a head that has been read from the buffer.
func (c *conn) short() answer {
	a := answer{status: c.head.status, length: c.head.length, reader: c.reader, head: &c.head}
	if a.length > int64(c.reader.Buffered()) {
		a.body = &counted{c.reader, a.length}
	}
	return a
}

var errSwitches = fmt.Errorf("%w: the endpoint switches to a protocol that it was not asked for", errInvalid)

// readFailed tells an answer that ends too early from one that is no HTTP.
func (c *conn) readFailed(err error) error {
	if c.ended != nil {
		return fmt.Errorf("reading the answer: %w", c.ended)
	}
	return fmt.Errorf("%w: %w", errInvalid, err)
}

// passInterim passes on an answer such as 103 Early Hints. Its headers do not stay for the answer behind it.
func passInterim(w http.ResponseWriter, response *http.Response) {
	header := w.Header()
	own := header.Clone()
	copyHeader(header, response.Header)
	w.WriteHeader(response.StatusCode)
	clear(header)
	for name, values := range own {
		header[name] = values
	}
}

// ours is the header that the endpoint cannot say where we do.
const ours = "Strict-Transport-Security"

// copyHeader moves the headers of an answer that are meant for the client.
func copyHeader(to, from http.Header) {
	for _, value := range from["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			from.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		delete(from, name)
	}
	for name, values := range from {
		own, ok := to[name]
		switch {
		case !ok:
			to[name] = values
		case name != ours:
			to[name] = append(own, values...)
		}
	}
}

// pass writes the answer to the client. An error that wraps ErrCut comes from the client or the endpoint when the head was
// already written: there is nothing to be said any more, and the client must notice that something is missing.
func (a *answer) pass(w http.ResponseWriter, buffered bool) error {
	header := w.Header()
	delete(header, "Server")
	if a.long != nil {
		return a.passLong(w, buffered)
	}
	a.head.copyTo(header)
	w.WriteHeader(a.status)
	return a.passBody(w, buffered)
}

// caddys is what Caddy calls itself in the Via header of answers.
const caddys = "Caddy"

func (a *answer) passLong(w http.ResponseWriter, buffered bool) error {
	header, response := w.Header(), a.long
	header["Via"] = append(header["Via"], strconv.Itoa(response.ProtoMajor)+"."+strconv.Itoa(response.ProtoMinor)+" "+caddys)
	copyHeader(header, response.Header)
	announced := announce(header, response.Trailer)
	w.WriteHeader(a.status)
	if err := a.passBody(w, buffered); err != nil {
		return err
	}
	passTrailer(w, response.Trailer, announced)
	return nil
}

func (a *answer) passBody(w http.ResponseWriter, buffered bool) error {
	if err := a.copyBody(w, buffered); err != nil {
		return fmt.Errorf("%w: %w", ErrCut, err)
	}
	return nil
}

// ErrCut says that the head of an answer has reached the client, and its body has not. Nothing can be said any more: the
// client must notice that something is missing.
var ErrCut = errors.New("the answer ends too early")

// errNotTaken says that the client is the reason for it.
var errNotTaken = errors.New("the client does not take it")

func announce(header, trailer http.Header) int {
	if len(trailer) == 0 {
		return 0
	}
	names := make([]string, 0, len(trailer))
	for name := range trailer {
		names = append(names, name)
	}
	header.Add("Trailer", strings.Join(names, ", "))
	return len(names)
}

// passTrailer writes what came behind the body, also where nobody announced it.
func passTrailer(w http.ResponseWriter, trailer http.Header, announced int) {
	if len(trailer) == 0 {
		return
	}
	// Without a flush, a short body would get a Content-Length, and no trailer.
	_ = http.NewResponseController(w).Flush()
	prefix := ""
	if len(trailer) != announced {
		prefix = http.TrailerPrefix
	}
	for name, values := range trailer {
		for _, value := range values {
			w.Header().Add(prefix+name, value)
		}
	}
}

var buffers = sync.Pool{New: func() any {
	buffer := make([]byte, 32<<10)
	return &buffer
}}

// copyBody copies the body. What has no known length, or is a stream of events, reaches the client piece by piece.
func (a *answer) copyBody(w http.ResponseWriter, buffered bool) error {
	if a.body == nil {
		return a.copyBuffered(w)
	}
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	source := a.body
	if buffered && (a.length < 0 || a.length > int64(len(*buffer))) {
		pieces := newElastic(source)
		defer pieces.Close()
		source = pieces
	}
	if buffered || a.length != -1 && !strings.HasPrefix(a.contentType(), "text/event-stream") {
		return copyPieces(w, source, *buffer, func() error { return nil })
	}
	flush := http.NewResponseController(w).Flush
	if err := flush(); err != nil {
		return fmt.Errorf("%w: %w", errNotTaken, err)
	}
	return copyPieces(w, source, *buffer, flush)
}

// copyBuffered writes a body that has come in with its head.
func (a *answer) copyBuffered(w http.ResponseWriter) error {
	if a.length == 0 {
		return nil
	}
	body, err := a.reader.Peek(int(a.length))
	if err != nil {
		return err
	}
	if _, err := w.Write(body); err != nil {
		return fmt.Errorf("%w: %w", errNotTaken, err)
	}
	_, err = a.reader.Discard(len(body))
	return err
}

// copyPieces calls flush behind each piece.
func copyPieces(w http.ResponseWriter, source io.Reader, buffer []byte, flush func() error) error {
	for {
		n, err := source.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return fmt.Errorf("%w: %w", errNotTaken, err)
			}
			if err := flush(); err != nil {
				return fmt.Errorf("%w: %w", errNotTaken, err)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// reusable says whether another request may follow on the connection, once the body has been read to its end.
func (a *answer) reusable() bool { return a.long == nil || !a.long.Close && a.long.ProtoAtLeast(1, 1) }
