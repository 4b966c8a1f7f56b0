package http1

import (
	"bytes"

	"github.com/k8singress/k8singress/internal/message"
)

const (
	// mostSizeDigits keeps the size of a chunk from overflowing.
	mostSizeDigits = 15
	// mostWaste bounds what chunks cost beyond what sensible ones do, all together, and mostTrailers the fields behind the body.
	mostWaste    = 16 << 10
	mostTrailers = 8 << 10
	// ordinaryLine is the line of a sensible chunk.
	ordinaryLine = 16
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

// Decoder takes a body in chunks apart. The zero value is at its beginning.
type Decoder struct {
	state chunkState
	// digits of the size that is being read, and what is left of the chunk.
	digits uint8
	left   int64
	line   int
	waste  int64
	// total is the size of all chunks so far, and most how much it may be; 0 is any size.
	total, most int64
	// trailers are bytes until their end has come, and fields then.
	trailers []byte
	fields   message.Fields
}

// Limit says how many bytes of data all chunks together may have, which is above zero. Next refuses a larger body with the line of the
// chunk that is too large, before any of its data has come.
func (d *Decoder) Limit(most int64) { d.most = most }

// Next takes bytes of the body, and returns data, which is a part of them, and how many bytes are done with. It comes back with data as
// soon as there is some, so it is called again with what is left. Once the body has ended, consumed may be less than all: the rest is
// the next message. An error is an *Error, and final.
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

// Ahead returns how many bytes of data come next, with nothing in between. A caller may take as many of them from elsewhere, and says
// so with Took.
func (d *Decoder) Ahead() int64 {
	if d.state != chunkData {
		return 0
	}
	return d.left
}

// Took says that n bytes of those ahead have been read past the Decoder.
func (d *Decoder) Took(n int) {
	if d.left -= int64(n); d.left == 0 {
		d.state = chunkCR
	}
}

// Return gives the last n bytes of data back, for which there was no room. They are to come again.
func (d *Decoder) Return(n int) {
	if n > 0 {
		d.left += int64(n)
		d.state = chunkData
	}
}

// step takes one byte between the data of two chunks.
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
	if d.digits == mostSizeDigits {
		return errChunkSize
	}
	d.state = chunkDigits
	d.digits++
	d.left = d.left<<4 | int64(value)
	return nil
}

// extend takes what is behind the size: spaces, and extensions, which mean nothing here.
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
	if d.line > mostWaste {
		return errChunkWaste
	}
	return nil
}

// endLine bounds what lines cost: a body of chunks of one byte with long extensions is work without end for little data.
func (d *Decoder) endLine(c byte) error {
	if c != '\n' {
		return errChunkLine
	}
	d.waste = max(0, d.waste+int64(d.line)-ordinaryLine-2*min(d.left, mostWaste))
	if d.waste > mostWaste {
		return errChunkWaste
	}
	if d.total += d.left; d.most > 0 && d.total > d.most {
		return errBodyLarge
	}
	d.line, d.digits = 0, 0
	if d.state = chunkData; d.left == 0 {
		d.state = chunkTrailers
	}
	return nil
}

// takeTrailers collects the fields behind the last chunk: almost always there are none.
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
	if before+end > mostTrailers {
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

// parseTrailers keeps the fields that may stand behind a body, as message.Fields.Unknown does.
func (d *Decoder) parseTrailers() error {
	l := lines{bytes: d.trailers, text: string(d.trailers)}
	d.trailers = nil
	for {
		var field message.Field
		more, err := l.field(&field)
		if err != nil || !more {
			return err
		}
		if len(d.fields) == message.MostFields {
			return errMany
		}
		if field.Kind == message.Other {
			d.fields = append(d.fields, field)
		}
	}
}

// Trailers returns the fields behind the body once it has ended.
func (d *Decoder) Trailers() message.Fields { return d.fields }

const hexDigits = "0123456789abcdef"

// ChunkHeadSize is the longest line that AppendChunkHead writes.
const ChunkHeadSize = 18

// AppendChunkHead writes the line in front of a chunk, which is not empty. Behind its data stands EndOfChunk.
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

// EndOfChunk stands behind the data of a chunk.
const EndOfChunk = "\r\n"

// AppendLastChunk ends a body in chunks, with fields behind it.
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
