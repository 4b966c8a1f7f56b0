package http1

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/k8singress/k8singress/internal/http/message"
)

// Preface is the start of a connection from a client that uses HTTP/2 with prior knowledge. No HTTP/1.1 request starts
// like this.
const Preface = "PRI * HTTP/2.0\r\n"

// maxEmptyLines is the maximum number of empty lines before a request. RFC 9112 2.2 recommends that servers tolerate
// empty lines.
const maxEmptyLines = 4

// Scanner finds the end of a head in a growing buffer. It does not scan bytes twice. The zero value scans for the head
// of a request.
type Scanner struct {
	// Response is true for the head of a response, in which lines may end with a bare LF.
	Response bool

	start, line, seen int
	empty             uint8
}

// Find returns the head, including the empty line at its end, and the index of the first byte after it. If head is nil
// and there is no error, more bytes are needed. The caller must then call Find with the same buffer and more bytes at
// its end.
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

// checkStart rejects input that cannot be HTTP at its first byte, such as a TLS handshake on a plaintext port.
// Otherwise the client would wait for a response.
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

// token marks the characters of tokens, which are used in names and methods (RFC 9110 5.6.2).
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

// skipText returns the index of the first control character (except tab) at or after i, or len(b) if b has no such
// character. It checks eight bytes at a time.
func skipText(b []byte, i int) int {
	for {
		for i+8 <= len(b) {
			word := binary.LittleEndian.Uint64(b[i:])
			del := word ^ 0x7f*ones
			// The lowest remaining high bit marks the first byte that is below a space or equal to DEL.
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

// skipGraphic returns the index of the first space or control character at or after i, or len(b) if b has no such
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

// lines parses the lines of a head. text has the same content as bytes. Field names and values are substrings of text,
// so that they are not allocated separately.
type lines struct {
	bytes []byte
	text  string
	at    int
	// bare is true if a line may end with LF alone.
	bare bool
}

// end consumes a line break at the current position. It returns false if there is no line break at this position.
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

// field parses a field line into f. It returns false at the empty line that ends the fields.
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

// badName returns the error for a field line that has no colon directly after the field name. i is the index after the
// name.
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
