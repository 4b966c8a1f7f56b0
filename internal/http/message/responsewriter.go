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

// ResponseWriter is an http.ResponseWriter that writes the response of a net/http or Caddy handler to a Writer. As in
// net/http, it sets the Content-Length of a short body, and detects the Content-Type from the body if the handler has
// not set it. Finish must be called after the handler has returned.
type ResponseWriter struct {
	head   func(*Response) error
	w      Writer
	header http.Header
	// wrote is true once the status is known, and sent once the head was written. buffered holds the body in between.
	wrote    bool
	status   int
	buffered []byte
	sent     bool
	err      error
}

// maxBuffered is the maximum size in bytes of a body that is buffered to determine its length, as in net/http.
const maxBuffered = 2048

// NewResponseWriter returns a ResponseWriter. head writes the head of the response; everything else is written to w.
func NewResponseWriter(w Writer, head func(*Response) error) *ResponseWriter {
	return &ResponseWriter{head: head, w: w, header: http.Header{}}
}

// Header returns the header of the response. Changes have no effect after the head was written.
func (h *ResponseWriter) Header() http.Header { return h.header }

// Status returns the status of the response, or 0 if the handler has not set one.
func (h *ResponseWriter) Status() int { return h.status }

// WriteHeader writes an interim response at once, and stores the status of a final response.
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

// ReadFrom implements io.ReaderFrom. If the head was already sent, it does not buffer data.
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

// sniff sets a missing Content-Type. It detects the type from the buffered start of the body and part, the data that
// follows.
func (h *ResponseWriter) sniff(part []byte) {
	if _, ok := h.header["Content-Type"]; ok || h.header.Get("Content-Encoding") != "" ||
		len(h.buffered)+len(part) == 0 {
		return
	}
	h.header.Set("Content-Type", http.DetectContentType(append(h.buffered, part...)))
}

// send writes the head. length is the length of the body in bytes, or negative if it is not known. If the handler has
// set a valid Content-Length, length is ignored.
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

// FlushError flushes the response. http.ResponseController calls it.
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

// Finish writes the rest of the response. It is called when a handler has returned without an error.
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

// Started reports whether the handler has started the response. Its head may still be buffered.
func (h *ResponseWriter) Started() bool { return h.wrote }

// UnsentFields returns the header fields that a handler set before it returned without a response.
func (h *ResponseWriter) UnsentFields() Fields {
	return slices.DeleteFunc(FieldsOf(h.header), func(f Field) bool { return f.Kind.Hop() || f.Kind == ContentType })
}

// trailer returns the announced trailer fields and the fields with the prefix http.TrailerPrefix.
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

// streamConn turns a stream into a net.Conn. It has no addresses, and deadlines have no effect.
type streamConn struct{ io.ReadWriteCloser }

func (streamConn) LocalAddr() net.Addr              { return nil }
func (streamConn) RemoteAddr() net.Addr             { return nil }
func (streamConn) SetDeadline(time.Time) error      { return nil }
func (streamConn) SetReadDeadline(time.Time) error  { return nil }
func (streamConn) SetWriteDeadline(time.Time) error { return nil }
