package http1

import (
	"bytes"

	"github.com/k8singress/k8singress/internal/http/message"
)

const (
	// maxSizeDigits is the maximum number of hexadecimal digits of a chunk size. It prevents an integer overflow.
	maxSizeDigits = 15
	// maxOverhead is the maximum overhead of a chunked body in bytes, as counted by Decoder.endLine. maxTrailers is the
	// maximum size of the trailer section in bytes.
	maxOverhead = 16 << 10
	maxTrailers = 8 << 10
	// normalLine is the length in bytes up to which the size line of a chunk does not count as overhead.
	normalLine = 16
)

type chunkState uint8

const (
	chunkBegins chunkState = iota
	chunkDigits
	chunkPadding
	chunkExtension
	chunkLineLF
	chunkData
	chunkCR
	chunkLF
	chunkTrailers
	chunksDone
)

// Decoder decodes a body with Transfer-Encoding: chunked. The zero value is ready to use.
type Decoder struct {
	state chunkState
	// digits is the number of hexadecimal digits of the current chunk size that have been read so far. left is the
	// number of bytes left in the current chunk.
	digits   uint8
	left     int64
	line     int
	overhead int64
	// total is the size in bytes of all chunks so far. limit is the maximum of total, or 0 if there is no limit.
	total, limit int64
	// trailers buffers the trailer section until it is complete. It is then parsed, and the result is stored in fields.
	trailers []byte
	fields   message.Fields
}

// Limit sets the maximum size of the decoded body in bytes. It must be positive. If a chunk exceeds the limit, Next
// returns an error as soon as it has decoded the size of the chunk.
func (d *Decoder) Limit(limit int64) { d.limit = limit }

// Next decodes the next part of a chunked body. Its argument contains the bytes that were received. It returns the
// first decoded data, which is a part of the argument, and the number of bytes that were consumed. The caller must pass
// the remaining bytes to the next call. done is true at the end of the body: the remaining bytes then belong to the
// next message. Errors are of type *Error. After an error, Next must not be called again.
func (d *Decoder) Next(in []byte) (data []byte, consumed int, done bool, err error) {
	for i := 0; ; {
		switch {
		case d.state == chunksDone:
			return nil, i, true, nil
		case i == len(in):
			return nil, i, false, nil
		case d.state == chunkData:
			n := int(min(d.left, int64(len(in)-i)))
			d.Took(n)
			return in[i : i+n], i + n, false, nil
		case d.state == chunkTrailers:
			n, err := d.takeTrailers(in[i:])
			if err != nil {
				return nil, i, false, err
			}
			i += n
		default:
			if err := d.step(in[i]); err != nil {
				return nil, i, false, err
			}
			i++
		}
	}
}

// Ahead returns the number of data bytes that are left in the current chunk. The caller may read up to this number of
// bytes directly from the connection, without the Decoder, and must then call Took.
func (d *Decoder) Ahead() int64 {
	if d.state != chunkData {
		return 0
	}
	return d.left
}

// Took must be called after the caller has read n bytes of chunk data directly from the connection.
func (d *Decoder) Took(n int) {
	if d.left -= int64(n); d.left == 0 {
		d.state = chunkCR
	}
}

// Return undoes the decoding of the last n bytes of data, which the caller could not process. The caller must pass
// these bytes to Next again.
func (d *Decoder) Return(n int) {
	if n > 0 {
		d.left += int64(n)
		d.state = chunkData
	}
}

// step decodes one byte that is not chunk data, such as a digit of a chunk size.
func (d *Decoder) step(c byte) error {
	switch d.state {
	case chunkCR:
		if d.state = chunkLF; c != '\r' {
			return errChunkEnd
		}
		return nil
	case chunkLF:
		if d.state = chunkBegins; c != '\n' {
			return errChunkEnd
		}
		return nil
	case chunkLineLF:
		return d.endLine(c)
	default:
		d.line++
	}
	if d.state <= chunkDigits {
		if value := message.HexValue(c); value < 16 {
			return d.addDigit(value)
		} else if d.state == chunkBegins {
			return errChunkSize
		}
	}
	return d.extend(c)
}

func (d *Decoder) addDigit(value uint8) error {
	if d.digits == maxSizeDigits {
		return errChunkSize
	}
	d.state = chunkDigits
	d.digits++
	d.left = d.left<<4 | int64(value)
	return nil
}

// extend decodes a byte of a size line that follows the chunk size: white space, a chunk extension, or the end of the
// line. Chunk extensions are ignored.
func (d *Decoder) extend(c byte) error {
	switch {
	case c == '\r':
		d.state = chunkLineLF
	case d.state == chunkExtension && c >= ' ' && c != 0x7f || c == '\t' && d.state == chunkExtension:
	case c == ';':
		d.state = chunkExtension
	case c == ' ' || c == '\t':
		d.state = chunkPadding
	case d.state == chunkExtension || c < ' ' || c == 0x7f:
		return errChunkLine
	default:
		return errChunkSize
	}
	if d.line > maxOverhead {
		return errChunkOverhead
	}
	return nil
}

// endLine decodes the LF at the end of a size line. It returns an error if the overhead of the body is too large. The
// overhead grows by the bytes of each size line beyond normalLine, and shrinks by two bytes for each byte of data.
// Without this limit, a body of one-byte chunks with long extensions would cause much work for little data.
func (d *Decoder) endLine(c byte) error {
	if c != '\n' {
		return errChunkLine
	}
	d.overhead = max(0, d.overhead+int64(d.line)-normalLine-2*min(d.left, maxOverhead))
	if d.overhead > maxOverhead {
		return errChunkOverhead
	}
	if d.total += d.left; d.limit > 0 && d.total > d.limit {
		return errBodyLarge
	}
	d.line, d.digits = 0, 0
	if d.state = chunkData; d.left == 0 {
		d.state = chunkTrailers
	}
	return nil
}

// takeTrailers decodes bytes of the trailer section after the last chunk, and returns the number of bytes that it has
// consumed. The trailer section is almost always empty.
func (d *Decoder) takeTrailers(in []byte) (int, error) {
	if len(d.trailers) == 0 && len(in) >= 2 && in[0] == '\r' && in[1] == '\n' {
		d.state = chunksDone
		return 2, nil
	}
	before := len(d.trailers)
	end := bytes.IndexByte(in, '\n') + 1
	if end == 0 {
		end = len(in)
	}
	if before+end > maxTrailers {
		return 0, errTrailers
	}
	d.trailers = append(d.trailers, in[:end]...)
	lines := d.trailers
	switch {
	case lines[len(lines)-1] != '\n':
		return end, nil
	case !bytes.HasSuffix(lines, crlf):
		return 0, errBareLF
	case len(lines) > len(crlf) && !bytes.HasSuffix(lines, crlfcrlf):
		return end, nil
	}
	d.state = chunksDone
	return end, d.parseTrailers()
}

var (
	crlf     = []byte("\r\n")
	crlfcrlf = []byte("\r\n\r\n")
)

// parseTrailers parses the trailer section. Like message.Fields.TrailerFields, it drops fields that are not allowed in
// trailers.
func (d *Decoder) parseTrailers() error {
	l := lines{bytes: d.trailers, text: string(d.trailers)}
	d.trailers = nil
	for {
		var field message.Field
		more, err := l.field(&field)
		if err != nil || !more {
			return err
		}
		if len(d.fields) == message.MaxFields {
			return errMany
		}
		if field.Kind == message.Other {
			d.fields = append(d.fields, field)
		}
	}
}

// Trailers returns the trailer fields. It returns nil before the end of the body.
func (d *Decoder) Trailers() message.Fields { return d.fields }

const hexDigits = "0123456789abcdef"

// ChunkHeadSize is the maximum number of bytes that a call of AppendChunkHead appends.
const ChunkHeadSize = 18

// AppendChunkHead appends the size line of a chunk to buf. size is the number of data bytes, which must not be zero.
// The caller must write the data and then EndOfChunk.
func AppendChunkHead(buf []byte, size int) []byte {
	var digits [16]byte
	i := len(digits)
	for {
		i--
		digits[i] = hexDigits[size&0xf]
		if size >>= 4; size == 0 {
			break
		}
	}
	return append(append(buf, digits[i:]...), EndOfChunk...)
}

// EndOfChunk must be written after the data of a chunk.
const EndOfChunk = "\r\n"

// AppendLastChunk appends the last chunk and the trailer fields to buf. It leaves out hop-by-hop fields. If it returns
// an error, the returned buffer is the same as buf.
func AppendLastChunk(buf []byte, trailers message.Fields) ([]byte, error) {
	start := len(buf)
	buf = append(buf, "0\r\n"...)
	for i := range trailers {
		var err error
		if trailers[i].Kind.Hop() {
			continue
		}
		if buf, err = AppendField(buf, trailers[i].Name, trailers[i].Value); err != nil {
			return buf[:start], err
		}
	}
	return append(buf, EndOfChunk...), nil
}
