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

// ResponseWriter lets handlers of net/http and of Caddy answer by a Writer. As in net/http, a short body that is written at once
// gets a Content-Length, and one without a type is looked at for one. Finish has to be called when the handler has returned.
type ResponseWriter struct {
	head   func(*Response) error
	w      Writer
	header http.Header
	// wrote says that the status is known, and sent that the head has been written. held is the body in between.
	wrote  bool
	status int
	held   []byte
	sent   bool
	err    error
}

// mostHeld is how long a body may be that waits for its end, as in net/http.
const mostHeld = 2048

// NewResponseWriter returns a ResponseWriter. head writes the head of the answer, and w all else.
func NewResponseWriter(w Writer, head func(*Response) error) *ResponseWriter {
	return &ResponseWriter{head: head, w: w, header: http.Header{}}
}

// Header is that of the answer, until it is written.
func (h *ResponseWriter) Header() http.Header { return h.header }

// Status returns the status of the answer, or 0 if none has been written.
func (h *ResponseWriter) Status() int { return h.status }

// WriteHeader writes an interim answer at once, and remembers the status of the final one.
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
		if len(h.held)+len(part) <= mostHeld {
			h.held = append(h.held, part...)
			return len(part), nil
		}
		h.sniff(part)
		h.send(-1)
		h.release()
	}
	if h.err != nil {
		return 0, h.err
	}
	return h.w.Write(part)
}

// ReadFrom copies without a buffer of its own where that is possible.
func (h *ResponseWriter) ReadFrom(source io.Reader) (int64, error) {
	if !h.sent {
		buffer := make([]byte, mostHeld+1)
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

// sniff looks for the type of a body of which part is the next one.
func (h *ResponseWriter) sniff(part []byte) {
	if _, ok := h.header["Content-Type"]; ok || h.header.Get("Content-Encoding") != "" || len(h.held)+len(part) == 0 {
		return
	}
	h.header.Set("Content-Type", http.DetectContentType(append(h.held, part...)))
}

// send writes the head. length is that of the body where the handler has not said it; less than zero is not known.
func (h *ResponseWriter) send(length int64) {
	h.sent = true
	if text := h.header.Get("Content-Length"); text != "" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
			length = n
		}
	}
	answer := &Response{Status: h.status, Length: length}
	for _, names := range h.header["Trailer"] {
		for name := range strings.SplitSeq(names, ",") {
			answer.Trailers = append(answer.Trailers, strings.TrimSpace(name))
		}
	}
	answer.Close = strings.EqualFold(h.header.Get("Connection"), "close")
	for _, field := range FieldsOf(h.header) {
		if strings.HasPrefix(field.Name, http.TrailerPrefix) || field.Kind.Hop() && h.status != http.StatusSwitchingProtocols {
			continue
		}
		answer.Fields.Add(field)
	}
	h.err = h.head(answer)
}

func (h *ResponseWriter) release() {
	if h.err == nil && len(h.held) > 0 {
		_, h.err = h.w.Write(h.held)
	}
	h.held = nil
}

// FlushError is for http.ResponseController.
func (h *ResponseWriter) FlushError() error {
	h.WriteHeader(http.StatusOK)
	if !h.sent {
		h.sniff(nil)
		h.send(-1)
		h.release()
	}
	if h.err != nil {
		return h.err
	}
	return h.w.Flush()
}

// Flush is http.Flusher.
func (h *ResponseWriter) Flush() { _ = h.FlushError() } // http.Flusher has no error; the next Write has it.

// Hijack takes the connection over.
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

// Finish writes what is left of the answer to a handler that has returned without an error.
func (h *ResponseWriter) Finish() error {
	h.WriteHeader(http.StatusOK)
	if !h.sent {
		h.sniff(nil)
		h.send(int64(len(h.held)))
		h.release()
	}
	if h.err != nil {
		return h.err
	}
	return h.w.Trailer(h.trailer())
}

// Started says whether anything of the answer has been written, or is about to be.
func (h *ResponseWriter) Started() bool { return h.wrote }

// Left are the fields that stand in the header, of a handler that has not answered.
func (h *ResponseWriter) Left() Fields {
	return slices.DeleteFunc(FieldsOf(h.header), func(f Field) bool { return f.Kind.Hop() || f.Kind == ContentType })
}

// trailer are the fields that were announced, and those with http.TrailerPrefix.
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

// streamConn is a connection of which no more is known than that it is one.
type streamConn struct{ io.ReadWriteCloser }

func (streamConn) LocalAddr() net.Addr              { return nil }
func (streamConn) RemoteAddr() net.Addr             { return nil }
func (streamConn) SetDeadline(time.Time) error      { return nil }
func (streamConn) SetReadDeadline(time.Time) error  { return nil }
func (streamConn) SetWriteDeadline(time.Time) error { return nil }
