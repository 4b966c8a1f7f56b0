package message

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// httpWriter implements HTTPWriter: it writes a response to an http.ResponseWriter.
type httpWriter struct {
	w http.ResponseWriter
	// interim is true if the client supports interim responses (status 1xx).
	interim bool
	// trailers holds the names of the announced trailer fields, in canonical form.
	trailers map[string]bool
	started  bool
	// bodiless is true if the response has no body.
	bodiless bool
	isHead   bool
	// canClose is true if the response may have the field "Connection: close". HTTP/2 has no such field, but Go's
	// HTTP/2 server sends a GOAWAY frame for it.
	canClose bool
	unread   unread
	aborted  bool
	sent     int64
}

// HTTPWriter is a Writer that writes the response with net/http.
type HTTPWriter interface {
	Writer
	// Aborted reports whether Abort was called. If it was, the net/http handler must panic with http.ErrAbortHandler.
	Aborted() bool
	// Announce adds the header fields of response to the http.ResponseWriter without writing the response. Caddy's HTTP
	// server then writes the status and the body.
	Announce(response *Response)
	// Answered must be called when Caddy's HTTP server has written the response after Announce. response has the status
	// and the header fields, and sent is the number of bytes of its body.
	Answered(response *Response, sent int64)
	// FollowBody replaces the body of r with a body that records when it was read completely. If a response to an
	// HTTP/1 request begins before that, the connection is closed after the response, because the server does not know
	// where the next request begins.
	FollowBody(r *http.Request)
	// EndRequest must be called when the handler has responded. It limits the time in which net/http reads and discards
	// the rest of a body that FollowBody follows.
	EndRequest()
}

// NewHTTPWriter returns a Writer that sends the response for request r through w, the ResponseWriter of net/http.
// Header fields that w already contains are written before the fields of the response. If w already contains a
// Strict-Transport-Security field, the response's own field is dropped.
func NewHTTPWriter(w http.ResponseWriter, r *http.Request) HTTPWriter {
	return &httpWriter{w: w, interim: r.ProtoAtLeast(1, 1), isHead: r.Method == http.MethodHead,
		canClose: r.ProtoMajor < 3, unread: unread{http1: r.ProtoMajor == 1}}
}

func (h *httpWriter) Started() bool { return h.started }

func (h *httpWriter) Sent() int64 { return h.sent }

func (h *httpWriter) Aborted() bool { return h.aborted }

func (h *httpWriter) Abort() { h.aborted = true }

// EndBody sets the read deadline to a time in the past, so that reads of the request body fail with a timeout.
func (h *httpWriter) EndBody() {
	h.unread.stopped.Store(true)
	_ = http.NewResponseController(h.w).SetReadDeadline(time.Unix(1, 0))
}

// Interim writes an interim response with only the given fields. These fields are not repeated in the final response.
//
// Interim sets the key Content-Length, without values, because of a data race in Go's HTTP/2 server. This server
// encodes the header map on another goroutine. If the client resets the stream, the server does not wait for that
// goroutine, and the call of clear below would crash the process. If the map has the key Content-Length, the server
// encodes a copy of the map without this key instead. The HTTP/1 and HTTP/3 servers encode the map before WriteHeader
// returns, and ignore a key without values.
func (h *httpWriter) Interim(status int, fields Fields) error {
	if !h.interim || h.started {
		return nil
	}
	header := h.w.Header()
	own := header.Clone()
	clear(header)
	h.put(fields)
	header["Content-Length"] = nil
	h.w.WriteHeader(status)
	clear(header)
	for name, values := range own {
		header[name] = values
	}
	return nil
}

func (h *httpWriter) put(fields Fields) {
	header := h.w.Header()
	_, strict := header["Strict-Transport-Security"]
	for name, values := range fields.Header() {
		if before, ok := header[name]; ok {
			if strict && name == "Strict-Transport-Security" {
				continue
			}
			values = append(before, values...)
		}
		header[name] = values
	}
}

func (h *httpWriter) Announce(a *Response) {
	h.put(a.Fields)
	if a.Close && h.canClose {
		h.w.Header()["Connection"] = []string{"close"}
	}
	h.unread.announceClose(h.w)
}

func (h *httpWriter) Answered(_ *Response, sent int64) { h.sent = sent }

// Head writes the head of the response, with a Content-Length if the length is known. If the response has no
// Content-Type, net/http would guess one from the body. Head prevents this, because browsers would run scripts in
// content that is sent as HTML.
func (h *httpWriter) Head(a *Response) error {
	h.put(a.Fields)
	header := h.w.Header()
	if _, ok := header["Content-Type"]; !ok {
		header["Content-Type"] = nil
	}
	h.bodiless = h.isHead || a.Status == http.StatusNoContent || a.Status == http.StatusNotModified ||
		a.Status < http.StatusOK
	if a.Length >= 0 && a.Status >= http.StatusOK && a.Status != http.StatusNoContent {
		header["Content-Length"] = []string{strconv.FormatInt(a.Length, 10)}
	}
	if a.Close && h.canClose {
		header["Connection"] = []string{"close"}
	}
	if a.Status >= http.StatusOK {
		h.unread.announceClose(h.w)
	}
	if len(a.Trailers) > 0 && !h.bodiless {
		header.Add("Trailer", strings.Join(a.Trailers, ", "))
		h.trailers = make(map[string]bool, len(a.Trailers))
		for _, name := range a.Trailers {
			h.trailers[http.CanonicalHeaderKey(name)] = true
		}
	}
	h.started = true
	h.w.WriteHeader(a.Status)
	return nil
}

// Write writes a part of the response body. It discards the data if the response has no body.
func (h *httpWriter) Write(part []byte) (int, error) {
	if h.bodiless {
		return len(part), nil
	}
	n, err := h.w.Write(part)
	h.sent += int64(n)
	return n, err
}

func (h *httpWriter) ReadFrom(source io.Reader) (int64, error) {
	if h.bodiless {
		return io.Copy(io.Discard, source)
	}
	n, err := io.Copy(h.w, source)
	h.sent += n
	return n, err
}

func (h *httpWriter) Flush() error { return http.NewResponseController(h.w).Flush() }

// Trailer writes trailer fields, even if they were not announced.
func (h *httpWriter) Trailer(fields Fields) error {
	if len(fields) == 0 || h.bodiless {
		return nil
	}
	// Flush the body first. Otherwise net/http would send a short body with a Content-Length, and could not send
	// trailer fields after it.
	if err := h.Flush(); err != nil {
		return err
	}
	for i := range fields {
		name := http.CanonicalHeaderKey(fields[i].Name)
		if !h.trailers[name] {
			name = http.TrailerPrefix + name
		}
		h.w.Header().Add(name, fields[i].Value)
	}
	return nil
}

var errNoSwitch = errors.New("the client connection cannot be hijacked")

// Switch hijacks the connection from net/http.
func (h *httpWriter) Switch() (io.ReadWriteCloser, error) {
	if err := h.Flush(); err != nil {
		return nil, err
	}
	conn, buffered, err := http.NewResponseController(h.w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoSwitch, err)
	}
	return &switched{conn, buffered.Reader}, nil
}

// switched is a connection that was hijacked from net/http. ahead contains the bytes that net/http has already read
// from the connection.
type switched struct {
	net.Conn
	ahead *bufio.Reader
}

// Read returns the bytes in ahead first, and then reads directly from the connection. It bypasses net/http's buffer,
// because net/http would cancel the request after a read timeout.
func (s *switched) Read(b []byte) (int, error) {
	if n := s.ahead.Buffered(); n > 0 {
		return s.ahead.Read(b[:min(len(b), n)])
	}
	return s.Conn.Read(b)
}

// CloseWrite closes the write side of the connection. If the connection has no method CloseWrite, the whole connection
// is closed.
func (s *switched) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return s.Close()
}
