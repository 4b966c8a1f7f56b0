package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
)

// head is the head of an answer as almost all endpoints write it: HTTP/1.1, a final status, headers on one line each, and
// one Content-Length. It is read from the buffer at the cost of one string for all names and values. Anything else is left
// where it is, for http.ReadResponse to judge: whatever this reader takes, that one takes as well, and reads the same.
type head struct {
	status int
	length int64
	// fields are the headers that are meant for the client: our own Via, and those of the endpoint.
	fields []field
	// sized says that a Content-Length was among them.
	sized bool
}

// field is one header line.
type field struct{ name, value string }

// statusLine is what a head begins with, and statusEnd where its status ends.
const (
	statusLine = "HTTP/1.1 "
	statusEnd  = len(statusLine) + len("200")
)

var endOfHead = []byte("\r\n\r\n")

// read takes a head off the reader, which has a part of the answer in its buffer. If it returns false, nothing has been taken.
func (h *head) read(from *bufio.Reader) bool {
	buffered, _ := from.Peek(from.Buffered())
	end := bytes.Index(buffered, endOfHead)
	if end < 0 || !h.parse(string(buffered[:end+len("\r\n")])) {
		return false
	}
	_, _ = from.Discard(end + len(endOfHead)) // It is all in the buffer.
	return true
}

// parse reads lines that all end with CRLF.
func (h *head) parse(text string) bool {
	h.fields, h.length, h.sized = append(h.fields[:0], field{"Via", "1.1 " + caddys}), 0, false
	line, rest, _ := strings.Cut(text, "\r\n")
	if !h.parseStatus(line) {
		return false
	}
	for rest != "" {
		line, rest, _ = strings.Cut(rest, "\r\n")
		if !h.parseField(line) {
			return false
		}
	}
	return h.sized
}

// parseStatus wants a status that is followed by a body.
func (h *head) parseStatus(line string) bool {
	if len(line) < statusEnd || line[:len(statusLine)] != statusLine || len(line) > statusEnd && line[statusEnd] != ' ' {
		return false
	}
	h.status = 0
	for _, c := range []byte(line[len(statusLine):statusEnd]) {
		if c < '0' || c > '9' {
			return false
		}
		h.status = 10*h.status + int(c-'0')
	}
	return h.status >= http.StatusOK && h.status != http.StatusNoContent && h.status != http.StatusNotModified && plain(line)
}

func (h *head) parseField(line string) bool {
	colon := strings.IndexByte(line, ':')
	if colon < 0 || !token(line[:colon]) {
		return false
	}
	name, value := http.CanonicalHeaderKey(line[:colon]), strings.Trim(line[colon+1:], " \t")
	if !plain(value) {
		return false
	}
	switch name {
	case "Transfer-Encoding", "Trailer", "Te", "Upgrade", "Pragma", "Proxy-Connection", "Proxy-Authenticate":
		// Each of them changes what the rest means, or is seldom enough.
		return false
	case "Connection":
		return strings.EqualFold(value, "keep-alive")
	case "Keep-Alive":
		return true
	case "Content-Length":
		if h.sized || !h.parseLength(value) {
			return false
		}
		h.sized = true
	}
	h.fields = append(h.fields, field{name, value})
	return true
}

// mostDigits keeps the length from overflowing.
const mostDigits = 18

func (h *head) parseLength(digits string) bool {
	if digits == "" || len(digits) > mostDigits {
		return false
	}
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return false
		}
		h.length = 10*h.length + int64(c-'0')
	}
	return true
}

// plain says whether a line has no control characters in it but tabs: a lone CR or LF would be a line of its own to others.
func plain(line string) bool {
	for i := range len(line) {
		if c := line[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// copyTo adds the headers to those that are there.
func (h *head) copyTo(header http.Header) {
	values := make([]string, len(h.fields))
	for i, f := range h.fields {
		values[i] = f.value
		// Whoever appends to one of them must not write over the next.
		before, ok := header[f.name]
		switch {
		case !ok:
			header[f.name] = values[i : i+1 : i+1]
		case f.name != ours:
			header[f.name] = append(before, f.value)
		}
	}
}

func (h *head) contentType() string {
	for _, f := range h.fields {
		if f.name == "Content-Type" {
			return f.value
		}
	}
	return ""
}

// forget lets go of the strings.
func (h *head) forget() { clear(h.fields[:cap(h.fields)]) }

// counted is a body whose length is known.
type counted struct {
	from *bufio.Reader
	left int64
}

func (c *counted) Read(b []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n, err := c.from.Read(b[:min(int64(len(b)), c.left)])
	switch c.left -= int64(n); {
	case errors.Is(err, io.EOF):
		return n, io.ErrUnexpectedEOF
	case err == nil && c.left == 0:
		return n, io.EOF
	}
	return n, err
}
