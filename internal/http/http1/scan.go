package http1

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/k8singress/k8singress/internal/http/message"
)

// Preface is the first line that a client sends if it uses HTTP/2 with prior knowledge. It is not a valid HTTP/1.1
// request.
const Preface = "PRI * HTTP/2.0\r\n"

// maxEmptyLines is the maximum number of empty lines that a client may send before a request. RFC 9112 2.2 recommends
// that servers ignore empty lines.
const maxEmptyLines = 4

// Scanner finds the end of a message head in a buffer that grows while data arrives. It scans each byte only once. The
// zero value scans for a request head.
type Scanner struct {
	// Response must be set to scan for a response head, whose lines may end with LF instead of CRLF.
	Response bool

	start, line, seen int
	empty             uint8
}

// Find returns the message head in the buffer, including the empty line at its end, and the index of the first byte
// after the head. It returns a nil head and no error if more bytes are needed. The caller must then append bytes to the
// buffer and call Find again.
func (s *Scanner) Find(buffer []byte) (head []byte, end int, err error) {
	for {
		i := bytes.IndexByte(buffer[s.seen:], '\n')
		if i < 0 {
			s.seen = len(buffer)
			return nil, 0, s.checkStart(buffer)
		}
		i += s.seen
		s.seen = i + 1
		length := i - s.line
		if length > 0 && buffer[i-1] == '\r' {
			length--
		} else if !s.Response {
			return nil, 0, errBareLF
		}
		line := s.line
		s.line = i + 1
		switch {
		case length > 0:
		case line > s.start:
			return buffer[s.start:s.line], s.line, nil
		case s.Response || s.empty == maxEmptyLines:
			return nil, 0, errEmptyLines
		default:
			s.empty++
			s.start = s.line
		}
	}
}

// checkStart rejects input whose first byte cannot start an HTTP request, such as a TLS handshake on a plaintext port.
// Otherwise the client would wait for a response until a timeout.
func (s *Scanner) checkStart(buffer []byte) error {
	if s.start == len(buffer) {
		return nil
	}
	first := buffer[s.start]
	switch {
	case s.Response && first != 'H':
		return errStatusLine
	case !s.Response && !token[first] && first != '\r':
		return errMethodToken
	}
	return nil
}

// token marks the characters that may occur in a token, such as a field name or a method (RFC 9110 5.6.2).
var token = func() (all [256]bool) {
	for c := range all {
		all[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
	}
	for _, c := range []byte("!#$%&'*+-.^_`|~") {
		all[c] = true
	}
	return all
}()

func isToken(text string) bool {
	for i := range len(text) {
		if !token[text[i]] {
			return false
		}
	}
	return text != ""
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// skipText returns the index of the first control character, except tab, in b[i:], or len(b) if there is no such
// character. It checks eight bytes at a time.
func skipText(b []byte, i int) int {
	for {
		for i+8 <= len(b) {
			word := binary.LittleEndian.Uint64(b[i:])
			del := word ^ 0x7f*ones
			// The lowest set bit of found belongs to the first control character.
			if found := ((word-0x20*ones)&^word | (del-ones)&^del) & highs; found != 0 {
				i += bits.TrailingZeros64(found) / 8
				break
			}
			i += 8
		}
		for i < len(b) && b[i] >= ' ' && b[i] != 0x7f {
			i++
		}
		if i == len(b) || b[i] != '\t' {
			return i
		}
		i++
	}
}

// skipGraphic returns the index of the first space or control character in b[i:], or len(b) if there is no such
// character.
func skipGraphic(b []byte, i int) int {
	for i+8 <= len(b) {
		word := binary.LittleEndian.Uint64(b[i:])
		del := word ^ 0x7f*ones
		if found := ((word-0x21*ones)&^word | (del-ones)&^del) & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
		i += 8
	}
	for i < len(b) && b[i] > ' ' && b[i] != 0x7f {
		i++
	}
	return i
}

// lines parses a message head line by line. bytes and text both contain the head. Field names and values are substrings
// of text, so that no memory is allocated for them.
type lines struct {
	bytes []byte
	text  string
	at    int
	// bare is true if lines may end with LF alone instead of CRLF.
	bare bool
}

// end skips the line break at the current position. It returns false if there is no line break.
func (l *lines) end() bool {
	rest := l.bytes[l.at:]
	switch {
	case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
		l.at += 2
		return true
	case l.bare && len(rest) > 0 && rest[0] == '\n':
		l.at++
		return true
	}
	return false
}

// field parses the next header field into f. It returns false at the empty line after the last header field.
func (l *lines) field(f *message.Field) (bool, error) {
	if l.end() {
		return false, nil
	}
	b, i := l.bytes, l.at
	for i < len(b) && token[b[i]] {
		i++
	}
	if i == l.at || i == len(b) || b[i] != ':' {
		return false, l.badName(i)
	}
	f.Name = l.text[l.at:i]
	i++
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	end := skipText(b, i)
	l.at = end
	if !l.end() {
		return false, errControl
	}
	for end > i && (b[end-1] == ' ' || b[end-1] == '\t') {
		end--
	}
	f.Value = l.text[i:end]
	f.Kind = message.KindOf(f.Name)
	return true, nil
}

// badName returns the error to report for a header field whose name is not followed by a colon. i is the index of the
// byte after the name.
func (l *lines) badName(i int) error {
	space := i < len(l.bytes) && (l.bytes[i] == ' ' || l.bytes[i] == '\t')
	switch {
	case space && i == l.at:
		return errFold
	case space:
		return errSpace
	}
	return errName
}
