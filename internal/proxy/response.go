package proxy

import (
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

// readHead reads the head of the answer. Interim answers are passed on, as RFC 9110 15.2 demands; all heads together have
// one limit.
func (c *conn) readHead(w http.ResponseWriter, r *http.Request) (*http.Response, error) {
	for {
		response, err := http.ReadResponse(c.reader, r)
		if err != nil {
			return nil, c.readFailed(err)
		}
		switch {
		case response.StatusCode < http.StatusContinue:
			return nil, fmt.Errorf("%w: it has the status %03d", errInvalid, response.StatusCode)
		case response.StatusCode == http.StatusSwitchingProtocols:
			return nil, fmt.Errorf("%w: the endpoint switches to another protocol without being asked", errInvalid)
		case response.StatusCode >= http.StatusOK:
			c.countsHead = false
			return response, nil
		}
		passInterim(w, response)
	}
}

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
		if own, ok := to[name]; ok {
			to[name] = append(own, values...)
			continue
		}
		to[name] = values
	}
}

// pass writes the answer to the client. An error that wraps ErrCut comes from the client or the endpoint when the head was
// already written: there is nothing to be said any more, and the client must notice that something is missing.
func (c *conn) pass(w http.ResponseWriter, response *http.Response, buffered bool) error {
	header := w.Header()
	delete(header, "Server")
	header["Via"] = append(header["Via"], strconv.Itoa(response.ProtoMajor)+"."+strconv.Itoa(response.ProtoMinor)+" Caddy")
	copyHeader(header, response.Header)
	announced := announce(header, response.Trailer)
	w.WriteHeader(response.StatusCode)
	if err := copyBody(w, response, buffered); err != nil {
		return fmt.Errorf("%w: %w", ErrCut, err)
	}
	passTrailer(w, response.Trailer, announced)
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
func copyBody(w http.ResponseWriter, response *http.Response, buffered bool) error {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	source := io.Reader(response.Body)
	if buffered && (response.ContentLength < 0 || response.ContentLength > int64(len(*buffer))) {
		pieces := newElastic(response.Body)
		defer pieces.Close()
		source = pieces
	}
	stream := !buffered && (response.ContentLength == -1 || strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream"))
	flush := func() error { return nil }
	if stream {
		flush = http.NewResponseController(w).Flush
		if err := flush(); err != nil {
			return fmt.Errorf("%w: %w", errNotTaken, err)
		}
	}
	for {
		n, err := source.Read(*buffer)
		if n > 0 {
			if _, err := w.Write((*buffer)[:n]); err != nil {
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

// reusable says whether another request may follow on the connection, now that the body has been read to its end.
func reusable(response *http.Response) bool { return !response.Close && response.ProtoAtLeast(1, 1) }
