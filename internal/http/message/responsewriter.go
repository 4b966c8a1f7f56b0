package message

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ResponseWriter is an http.ResponseWriter that passes the response of a net/http or Caddy handler to a Writer. Like
// net/http, it sets the Content-Length of a short body, and detects the Content-Type from the body if the handler has
// not set it. Finish must be called after the handler has returned.
type ResponseWriter struct {
	head   func(*Response) error
	w      Writer
	header http.Header
	// wrote is true after the handler has set the status. sent is true after the response head was written. Until then,
	// buffered holds the start of the body.
	wrote    bool
	status   int
	buffered []byte
	sent     bool
	err      error
}

// maxBuffered is the maximum size in bytes of a body that is buffered to determine its Content-Length, as in net/http.
const maxBuffered = 2048

// NewResponseWriter returns a ResponseWriter that writes to w. To write the head of the response, it calls the function
// head instead of w.Head.
func NewResponseWriter(w Writer, head func(*Response) error) *ResponseWriter {
	return &ResponseWriter{head: head, w: w, header: http.Header{}}
}

// Header returns the header fields of the response. Changing them has no effect after the response head was written.
func (h *ResponseWriter) Header() http.Header { return h.header }

// Status returns the status of the response, or 0 if the handler has not set one.
func (h *ResponseWriter) Status() int { return h.status }

// WriteHeader sends an interim response (status 1xx) immediately. For other responses, it stores the status until the
// response head is written.
func (h *ResponseWriter) WriteHeader(status int) {
	switch {
	case h.wrote:
	case status < http.StatusOK && status != http.StatusSwitchingProtocols:
		h.err = errors.Join(h.err, h.w.Interim(status, FieldsOf(h.header)))
	default:
		h.wrote, h.status = true, status
		if status == http.StatusSwitchingProtocols {
			h.send(-1)
		}
	}
}

func (h *ResponseWriter) Write(part []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	if h.err != nil {
		return 0, h.err
	}
	if !h.sent {
		if len(h.buffered)+len(part) <= maxBuffered {
			h.buffered = append(h.buffered, part...)
			return len(part), nil
		}
		h.sniff(part)
		h.send(-1)
		h.sendBuffered()
	}
	if h.err != nil {
		return 0, h.err
	}
	return h.w.Write(part)
}

// ReadFrom implements io.ReaderFrom. After the response head was sent, it copies the data without buffering it.
func (h *ResponseWriter) ReadFrom(source io.Reader) (int64, error) {
	if !h.sent {
		buffer := make([]byte, maxBuffered+1)
		n, err := io.ReadFull(source, buffer)
		if _, failed := h.Write(buffer[:n]); failed != nil {
			return 0, failed
		}
		if err != nil {
			return int64(n), ended(err)
		}
		more, err := h.ReadFrom(source)
		return int64(n) + more, err
	}
	return h.w.ReadFrom(source)
}

func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// sniff sets the Content-Type if the handler has not set it. It detects the type from the start of the body: the
// buffered data, followed by part.
func (h *ResponseWriter) sniff(part []byte) {
	if _, ok := h.header["Content-Type"]; ok || h.header.Get("Content-Encoding") != "" ||
		len(h.buffered)+len(part) == 0 {
		return
	}
	h.header.Set("Content-Type", http.DetectContentType(append(h.buffered, part...)))
}

// send writes the response head. length is the length of the body in bytes, or negative if it is not known. A valid
// Content-Length that the handler has set takes precedence over length.
func (h *ResponseWriter) send(length int64) {
	h.sent = true
	if text := h.header.Get("Content-Length"); text != "" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
			length = n
		}
	}
	response := &Response{Status: h.status, Length: length}
	for _, names := range h.header["Trailer"] {
		for name := range strings.SplitSeq(names, ",") {
			response.Trailers = append(response.Trailers, strings.TrimSpace(name))
		}
	}
	response.Close = strings.EqualFold(h.header.Get("Connection"), "close")
	for _, field := range FieldsOf(h.header) {
		if strings.HasPrefix(field.Name, http.TrailerPrefix) || field.Kind.Hop() &&
			h.status != http.StatusSwitchingProtocols {
			continue
		}
		response.Fields.Add(field)
	}
	h.err = h.head(response)
}

func (h *ResponseWriter) sendBuffered() {
	if h.err == nil && len(h.buffered) > 0 {
		_, h.err = h.w.Write(h.buffered)
	}
	h.buffered = nil
}

// FlushError sends all buffered data. http.ResponseController calls it.
func (h *ResponseWriter) FlushError() error {
	h.WriteHeader(http.StatusOK)
	if !h.sent {
		h.sniff(nil)
		h.send(-1)
		h.sendBuffered()
	}
	if h.err != nil {
		return h.err
	}
	return h.w.Flush()
}

// Flush implements http.Flusher.
func (h *ResponseWriter) Flush() { _ = h.FlushError() } // http.Flusher returns no error; the next Write returns it.

// Hijack implements http.Hijacker.
func (h *ResponseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	stream, err := h.w.Switch()
	if err != nil {
		return nil, nil, err
	}
	conn, ok := stream.(net.Conn)
	if !ok {
		conn = streamConn{stream}
	}
	h.wrote, h.sent = true, true
	return conn, bufio.NewReadWriter(bufio.NewReader(stream), bufio.NewWriter(stream)), nil
}

// Finish sends the rest of the response. It is called after a handler has returned without an error.
func (h *ResponseWriter) Finish() error {
	h.WriteHeader(http.StatusOK)
	if !h.sent {
		h.sniff(nil)
		h.send(int64(len(h.buffered)))
		h.sendBuffered()
	}
	if h.err != nil {
		return h.err
	}
	return h.w.Trailer(h.trailer())
}

// Started reports whether the handler has started the response. The response may still be buffered.
func (h *ResponseWriter) Started() bool { return h.wrote }

// UnsentFields returns the header fields that a handler has set without writing a response.
func (h *ResponseWriter) UnsentFields() Fields {
	return slices.DeleteFunc(FieldsOf(h.header), func(f Field) bool { return f.Kind.Hop() || f.Kind == ContentType })
}

// trailer returns the trailer fields of the response: the fields that were announced in the Trailer field, and the
// fields whose names have the prefix http.TrailerPrefix.
func (h *ResponseWriter) trailer() Fields {
	var fields Fields
	for _, field := range FieldsOf(h.header) {
		if name, ok := strings.CutPrefix(field.Name, http.TrailerPrefix); ok {
			fields.Add(NewField(name, field.Value))
		}
	}
	for _, names := range h.header["Trailer"] {
		for name := range strings.SplitSeq(names, ",") {
			for _, value := range h.header.Values(strings.TrimSpace(name)) {
				fields.Add(NewField(strings.TrimSpace(name), value))
			}
		}
	}
	return fields
}

// streamConn turns an io.ReadWriteCloser into a net.Conn. Its addresses are empty, and setting deadlines has no effect.
type streamConn struct{ io.ReadWriteCloser }

func (streamConn) LocalAddr() net.Addr              { return nil }
func (streamConn) RemoteAddr() net.Addr             { return nil }
func (streamConn) SetDeadline(time.Time) error      { return nil }
func (streamConn) SetReadDeadline(time.Time) error  { return nil }
func (streamConn) SetWriteDeadline(time.Time) error { return nil }
