package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/ir"
)

// inMemory is how much of a body is held in memory. What is longer goes into a file that has no name.
const inMemory = 64 << 10

// body is the whole body of a request, kept so that another endpoint can get it when one fails.
type body struct {
	memory []byte
	file   *os.File
	size   int64
}

// LimitBody makes a body that is too large an error, 413. One that says how large it is, is refused before it is read.
func (x *Exchange) LimitBody(w http.ResponseWriter, r *http.Request) error {
	most := x.settings.MaxBody
	if most < 0 || r.Body == nil || r.ContentLength == 0 {
		return nil
	}
	if r.ContentLength > most {
		return caddyhttp.Error(http.StatusRequestEntityTooLarge, fmt.Errorf("the body has %d bytes, and %d are allowed", r.ContentLength, most))
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	return nil
}

// ReadBody reads all of the body before an endpoint is asked, unless the settings say otherwise. Without a place for a file
// the rest of a long body is left to come in as it does.
func (x *Exchange) ReadBody(r *http.Request) error {
	if x.streams(r) || r.Body == nil || r.ContentLength == 0 {
		return nil
	}
	var memory bytes.Buffer
	_, err := memory.ReadFrom(io.LimitReader(r.Body, inMemory+1))
	if err != nil {
		return readFailed(r.Context(), err)
	}
	b := &body{memory: memory.Bytes(), size: int64(memory.Len())}
	if b.size > inMemory {
		if b.file, err = unnamed(); err != nil {
			r.Body = rejoined{io.MultiReader(bytes.NewReader(b.memory), r.Body), r.Body}
			return nil
		}
		n, err := io.Copy(b.file, r.Body)
		if b.size += n; err != nil {
			b.close()
			return readFailed(r.Context(), err)
		}
	}
	if r.ContentLength > b.size {
		b.close()
		return readFailed(r.Context(), io.ErrUnexpectedEOF)
	}
	x.body = b
	return nil
}

// streams says whether the body is sent on as it comes in. FastCGI has to know its length.
func (x *Exchange) streams(r *http.Request) bool {
	return x.settings.StreamRequest && (x.settings.Protocol != ir.FastCGI || r.ContentLength >= 0)
}

// rejoined is a body of which a part has been read, and given back.
type rejoined struct {
	io.Reader
	io.Closer
}

// unnamed returns a file that ends with its last user.
func unnamed() (*os.File, error) {
	file, err := os.CreateTemp("", "k8singress-body-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// readFailed tells what became of a client that does not send what it said.
func readFailed(ctx context.Context, err error) error {
	status := http.StatusBadRequest
	switch tooLarge := new(http.MaxBytesError); {
	case errors.As(err, &tooLarge):
		status = http.StatusRequestEntityTooLarge
	case isTimeout(err):
		// net/http takes it for the end of the client, so this comes first.
		status = http.StatusRequestTimeout
	case ctx.Err() != nil:
		status = clientGone
	}
	return caddyhttp.Error(status, fmt.Errorf("reading the request: %w", err))
}

// reader reads the body from its beginning. Several may be read at once.
func (b *body) reader() io.ReadCloser {
	memory := bytes.NewReader(b.memory)
	if b.file == nil {
		return io.NopCloser(memory)
	}
	rest := io.NewSectionReader(b.file, 0, b.size-int64(len(b.memory)))
	return io.NopCloser(io.MultiReader(memory, rest))
}

func (b *body) close() {
	if b.file != nil {
		_ = b.file.Close()
	}
}
