package message

import (
	"bytes"
	"strings"
)

// Ambiguous reports whether servers may interpret a path in more than one way. escaped is the percent-encoded path, as
// it is sent to an endpoint. A path is ambiguous if it contains a dot segment, two slashes in a row, a semicolon or a
// backslash; a dot, slash, semicolon or backslash that is percent-encoded; or a double encoding such as "%252f".
func Ambiguous(escaped string) bool {
	for i := range len(escaped) {
		switch escaped[i] {
		case ';', '\\':
			return true
		case '/':
			if rest := escaped[i+1:]; rest != "" && (rest[0] == '/' || rest[0] == '.' && beginsWithDots(rest)) {
				return true
			}
		case '%':
			c, ok := unescape(escaped[i:])
			if !ok {
				continue
			}
			_, twice := unescape("%" + escaped[i+escapeSize:])
			if strings.IndexByte(`./\;`, c) >= 0 || c == '%' && twice {
				return true
			}
		}
	}
	return false
}

// beginsWithDots reports whether the first segment of a path is the dot segment "." or "..".
func beginsWithDots(path string) bool {
	segment, _, _ := strings.Cut(path, "/")
	return isDots(segment)
}

func isDots(segment string) bool { return segment == "." || segment == ".." }

// escapeSize is the length of a percent-encoded byte.
const escapeSize = len("%2f")

// unescape decodes the percent-encoded byte at the start of text. ok is false if text does not start with a
// percent-encoded byte.
func unescape(text string) (c byte, ok bool) {
	if len(text) < escapeSize || text[0] != '%' {
		return 0, false
	}
	high, low := HexValue(text[1]), HexValue(text[2])
	return high<<4 | low, high < 16 && low < 16
}

// HexValue returns the value of a hexadecimal digit, or 16 if c is not a hexadecimal digit.
func HexValue(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 16
}

// reader describes one of the ways in which servers interpret a path.
type reader struct {
	// decodes is the number of times that the path is decoded.
	decodes int
	// cutsFirst is true if path parameters such as ";v=1" are removed from each segment before the path is decoded.
	// cutsLast is true if they are removed after the path was decoded.
	cutsFirst, cutsLast bool
	// backslashes is true if backslashes are treated as slashes.
	backslashes bool
	dots        dotSegments
}

// dotSegments defines how the segments "." and ".." are handled.
type dotSegments uint8

const (
	// keepDots leaves dot segments in the path.
	keepDots dotSegments = iota
	// resolveDots resolves dot segments, as in RFC 3986. It does not merge consecutive slashes.
	resolveDots
	// mergeAndResolve first merges consecutive slashes and then resolves dot segments, as in nginx.
	mergeAndResolve
)

// readers returns the ways in which servers may interpret the given path, as far as their results may differ. The first
// one leaves the path unchanged.
func readers(escaped string) (all []reader) {
	decodes, cuts := 0, []reader{{}}
	if decoded := decode(escaped); decoded != escaped {
		decodes = 1
		if decode(decoded) != decoded {
			decodes = 2
		}
	}
	if strings.Contains(escaped, ";") {
		cuts = append(cuts, reader{cutsFirst: true})
	}
	last := decodeTimes(escaped, decodes)
	if strings.Contains(last, ";") {
		cuts = append(cuts, reader{cutsLast: true})
	}
	backslashes := []bool{false}
	if strings.Contains(last, `\`) {
		backslashes = append(backslashes, true)
	}
	for n := range decodes + 1 {
		for _, r := range cuts {
			for _, r.backslashes = range backslashes {
				for _, r.dots = range []dotSegments{keepDots, resolveDots, mergeAndResolve} {
					r.decodes = n
					all = append(all, r)
				}
			}
		}
	}
	return all
}

// Limits for ambiguous paths whose readings must be compared. maxAmbiguous is the maximum length of the path in bytes.
// An S3 object key, for example, has at most 1024 bytes, or 3072 bytes if each byte is percent-encoded. maxReadings is
// the maximum number of readings, each of which costs a route lookup, for example.
const (
	maxAmbiguous = 4 << 10
	maxReadings  = 16
)

// Readings returns the distinct results of all ways in which servers may interpret a path. escaped is the
// percent-encoded path, as it is sent to an endpoint. ok is false if the path is too long, or if there are more results
// than for any legitimate path.
func Readings(escaped string) (all []string, ok bool) {
	if len(escaped) > maxAmbiguous {
		return nil, false
	}
	seen := map[string]bool{}
	for _, r := range readers(escaped) {
		read := r.read(escaped)
		if seen[read] {
			continue
		}
		if len(all) == maxReadings {
			return nil, false
		}
		seen[read] = true
		all = append(all, read)
	}
	return all, true
}

func (r *reader) read(path string) string {
	if r.cutsFirst {
		path = cutParameters(path)
	}
	path = decodeTimes(path, r.decodes)
	if r.backslashes {
		path = strings.ReplaceAll(path, `\`, "/")
	}
	if r.cutsLast {
		path = cutParameters(path)
	}
	if r.dots != keepDots && r.decodes == 0 {
		path = unescapeDots(path)
	}
	switch r.dots {
	case resolveDots:
		return resolve(path)
	case mergeAndResolve:
		return CleanPath(path)
	default:
		return path
	}
}

func decodeTimes(path string, times int) string {
	for range times {
		path = decode(path)
	}
	return path
}

// decode decodes a percent-encoded path once. It leaves invalid percent-encodings unchanged.
func decode(path string) string {
	at := strings.IndexByte(path, '%')
	if at < 0 {
		return path
	}
	decoded := make([]byte, at, len(path))
	copy(decoded, path)
	for i := at; i < len(path); i++ {
		if c, ok := unescape(path[i:]); ok {
			decoded = append(decoded, c)
			i += escapeSize - 1
		} else {
			decoded = append(decoded, path[i])
		}
	}
	return string(decoded)
}

// cutParameters removes path parameters: from each segment, the first semicolon and everything after it.
func cutParameters(path string) string {
	var b strings.Builder
	b.Grow(len(path))
	for {
		segments, rest, ok := strings.Cut(path, ";")
		b.WriteString(segments)
		slash := strings.IndexByte(rest, '/')
		if !ok || slash < 0 {
			return b.String()
		}
		path = rest[slash:]
	}
}

// unescapeDots decodes the dot segments that contain percent-encoded dots, such as "%2e%2e", and leaves the rest of the
// path unchanged. Some servers decode only these segments (RFC 3986 6.2.2.2).
func unescapeDots(path string) string {
	if !strings.Contains(path, "%2e") && !strings.Contains(path, "%2E") {
		return path
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if plain := decode(segment); isDots(plain) {
			segments[i] = plain
		}
	}
	return strings.Join(segments, "/")
}

// resolve removes dot segments as in RFC 3986 5.2.4. The path must begin with a slash.
func resolve(path string) string {
	if !strings.Contains(path, "/.") {
		return path
	}
	kept := make([]byte, 0, len(path))
	for path != "" {
		end := 1 + strings.IndexByte(path[1:], '/')
		if end == 0 {
			end = len(path)
		}
		segment := path[:end]
		path = path[end:]
		switch {
		case !isDots(segment[1:]):
			kept = append(kept, segment...)
			continue
		case segment == "/..":
			kept = kept[:max(0, bytes.LastIndexByte(kept, '/'))]
		}
		if path == "" {
			kept = append(kept, '/')
		}
	}
	return string(kept)
}

// HasDotSegment reports whether a server may interpret a segment of a decoded path as a dot segment. Examples are "..",
// "..;v=1" and "%2e%2e". It also splits the path at backslashes, because some servers treat them as slashes.
func HasDotSegment(path string) bool {
	return hasDotSegment(path) || strings.IndexByte(path, '%') >= 0 && hasDotSegment(decode(path))
}

// hasDotSegment is like HasDotSegment, without decoding the path.
func hasDotSegment(path string) bool {
	for i := range len(path) {
		if path[i] != '.' || i > 0 && !isSeparator(path[i-1]) {
			continue
		}
		behind := strings.TrimPrefix(path[i+1:], ".")
		if behind == "" || behind[0] == ';' || isSeparator(behind[0]) {
			return true
		}
	}
	return false
}

func isSeparator(c byte) bool { return c == '/' || c == '\\' }
