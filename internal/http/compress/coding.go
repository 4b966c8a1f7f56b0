package compress

import (
	"bufio"
	"cmp"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pools"
)

const (
	gzipName, brotliName = "gzip", "br"
	// window is the base-2 logarithm of the window size of Brotli encoders, like nginx's brotli_window. The memory of
	// an encoder depends on the window size.
	window = 19
	// piece is the size, in bytes, of each write of compressed data to the client.
	piece = 8 << 10
)

// coding is one compression algorithm with its settings.
type coding struct {
	name     string
	minBytes int64
	types    map[string]bool
	// bytes is the amount of memory, in bytes, that one encoder needs.
	bytes int64
	// encoders is a pool of encoders.
	encoders *pools.Pool[encoder]
}

// encoder is a reusable compressor with an output buffer. The field named to is the compressor. It writes the
// compressed data to the buffer, which is the field named out.
type encoder struct {
	to interface {
		io.WriteCloser
		Flush() error
		Reset(to io.Writer)
	}
	out *bufio.Writer
}

func newGzip(of *ir.Coding) *coding {
	level := cmp.Or(of.Level, ir.GzipLevel)
	c := newCoding(gzipName, of, ir.GzipTypes, ir.GzipMinSize, func(out *bufio.Writer) encoder {
		to, err := gzip.NewWriterLevel(out, level)
		if err != nil {
			to = gzip.NewWriter(out) // The level was validated when the ConfigMap was parsed.
		}
		return encoder{to, out}
	})
	c.bytes = kibibytes(gzipKiB[:], level)
	return c
}

func newBrotli(of *ir.Coding) *coding {
	level := max(0, cmp.Or(of.Level, ir.BrotliLevel))
	c := newCoding(brotliName, of, ir.BrotliTypes, ir.BrotliMinSize, func(out *bufio.Writer) encoder {
		return encoder{brotli.NewWriterOptions(out, brotli.WriterOptions{Quality: level, LGWin: window}), out}
	})
	c.bytes = kibibytes(brotliKiB[:], level)
	return c
}

func newCoding(name string, of *ir.Coding, types []string, minBytes int, create func(*bufio.Writer) encoder) *coding {
	c := &coding{name: name, minBytes: int64(max(0, cmp.Or(of.MinSize, minBytes))),
		types: map[string]bool{"text/html": true}}
	if of.Types != nil {
		types = of.Types
	}
	for _, t := range types {
		c.types[t] = true
	}
	c.encoders = pools.New("compress: "+name, func(e *encoder) { *e = create(bufio.NewWriterSize(nil, piece)) },
		(*encoder).clean)
	return c
}

// takes reports whether a response is large enough for this coding and has one of the configured media types. Whether
// the response may be compressed at all must be checked first, with the function compressible.
func (c *coding) takes(a *message.Response) bool {
	return (a.Length < 0 || a.Length >= c.minBytes) && (c.types["*"] || c.types[a.MediaType()])
}

// begin returns an encoder that writes to w.
func (c *coding) begin(w io.Writer) pools.Handle[encoder] {
	owned := c.encoders.Get()
	e := owned.Value()
	e.out.Reset(w)
	e.to.Reset(e.out)
	return owned.Move()
}

// clean removes the reference to the response writer, so that an encoder in the pool does not keep the writer in
// memory.
func (e *encoder) clean() {
	e.out.Reset(nil)
	e.to.Reset(e.out)
}

func (e *encoder) flush() error {
	if err := e.to.Flush(); err != nil {
		return err
	}
	return e.out.Flush()
}

func (e *encoder) close() error {
	if err := e.to.Close(); err != nil {
		return err
	}
	return e.out.Flush()
}
