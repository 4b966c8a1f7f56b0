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
	"sync/atomic"
	"time"
)

// httpWriter writes an answer by net/http.
type httpWriter struct {
	w http.ResponseWriter
	// interim says that the client knows interim answers.
	interim bool
	// trailers are those that have been announced.
	trailers map[string]bool
	started  bool
	// bare says that the answer has no body.
	bare bool
	head bool
	// leaves says that a client can be asked to leave the connection. Go's HTTP/2 makes a GOAWAY of it.
	leaves bool
	// unread says that the rest of the body will not be read: what comes next on the connection is no request.
	unread  atomic.Bool
	aborted bool
	sent    int64
	// one says that the client speaks HTTP/1.
	one bool
}

// HTTPWriter is a Writer above net/http.
type HTTPWriter interface {
	Writer
	// Aborted says that Abort was called: whoever called from net/http has to end with http.ErrAbortHandler.
	Aborted() bool
}

// NewHTTPWriter returns a Writer that writes the answer to a request by net/http. Fields that stand in the header of w already
// are written, too, in front of those of the answer; of a Strict-Transport-Security only the one that stands there.
func NewHTTPWriter(w http.ResponseWriter, r *http.Request) HTTPWriter {
	return &httpWriter{w: w, interim: r.ProtoAtLeast(1, 1), head: r.Method == http.MethodHead, leaves: r.ProtoMajor < 3, one: r.ProtoMajor == 1}
}

func (h *httpWriter) Started() bool { return h.started }

func (h *httpWriter) Sent() int64 { return h.sent }

func (h *httpWriter) Aborted() bool { return h.aborted }

func (h *httpWriter) Abort() { h.aborted = true }

// EndBody makes use of what net/http does with a client that takes too long.
func (h *httpWriter) EndBody() {
	h.unread.Store(true)
	_ = http.NewResponseController(h.w).SetReadDeadline(time.Unix(1, 0))
}

// Interim writes its own fields alone, and they do not stay for the answer behind it.
func (h *httpWriter) Interim(status int, fields Fields) error {
	if !h.interim || h.started {
		return nil
	}
	header := h.w.Header()
	own := header.Clone()
	clear(header)
	h.put(fields)
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

// Head sets Content-Length by the length of the answer. A body without a type goes without: net/http would guess one, and browsers run
// scripts in what is guessed to be HTML.
func (h *httpWriter) Head(a *Response) error {
	h.put(a.Fields)
	header := h.w.Header()
	if _, ok := header["Content-Type"]; !ok {
		header["Content-Type"] = nil
	}
	h.bare = h.head || a.Status == http.StatusNoContent || a.Status == http.StatusNotModified || a.Status < http.StatusOK
	if a.Length >= 0 && a.Status >= http.StatusOK && a.Status != http.StatusNoContent {
		header["Content-Length"] = []string{strconv.FormatInt(a.Length, 10)}
	}
	if (a.Close || h.one && h.unread.Load()) && h.leaves {
		header["Connection"] = []string{"close"}
	}
	if len(a.Trailers) > 0 && !h.bare {
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

// Write leaves out what cannot be sent.
func (h *httpWriter) Write(part []byte) (int, error) {
	if h.bare {
		return len(part), nil
	}
	n, err := h.w.Write(part)
	h.sent += int64(n)
	return n, err
}

func (h *httpWriter) ReadFrom(source io.Reader) (int64, error) {
	if h.bare {
		return io.Copy(io.Discard, source)
	}
	n, err := io.Copy(h.w, source)
	h.sent += n
	return n, err
}

func (h *httpWriter) Flush() error { return http.NewResponseController(h.w).Flush() }

// Trailer writes fields also where they were not announced.
func (h *httpWriter) Trailer(fields Fields) error {
	if len(fields) == 0 || h.bare {
		return nil
	}
	// Without a flush, a short body would get a Content-Length, and no trailer.
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

var errNoSwitch = errors.New("the connection of the client cannot be handed over")

// Switch takes the connection from net/http.
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

// switched is a connection of which net/http has read a part.
type switched struct {
	net.Conn
	ahead *bufio.Reader
}

// Read reads from the connection itself where it can: a timeout of it would be the end of the request for net/http.
func (s *switched) Read(b []byte) (int, error) {
	if n := s.ahead.Buffered(); n > 0 {
		return s.ahead.Read(b[:min(len(b), n)])
	}
	return s.Conn.Read(b)
}

// CloseWrite ends one direction.
func (s *switched) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return s.Close()
}
