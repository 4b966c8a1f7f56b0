package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/ir"
)

// inMemory is how much of a body is held in memory. What is longer goes into a file that has no name.
const inMemory = 64 << 10

// body is the whole body of a request, kept so that another endpoint can get it when one fails.
type body struct {
	memory []byte
	file   *spool
	size   int64
}

// LimitBody makes a body that is too large an error, 413. One that says how large it is, is refused before it is read.
func (x *Exchange) LimitBody(w http.ResponseWriter, r *http.Request) error {
	most := x.settings.MaxBody
	if most == ir.NoLimit || r.Body == nil || r.ContentLength == 0 {
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
	if _, err := memory.ReadFrom(io.LimitReader(r.Body, inMemory+1)); err != nil {
		return readFailed(r.Context(), err)
	}
	b := &body{memory: memory.Bytes(), size: int64(memory.Len())}
	if b.size > inMemory {
		if whole, err := b.readRest(r); !whole {
			x.rest = b
			return err
		}
	}
	if x.body = b; r.ContentLength > b.size {
		return readFailed(r.Context(), io.ErrUnexpectedEOF)
	}
	return nil
}

// readRest reads what does not fit into memory into a file. It returns false when there is no room: r has all of its body
// again then, and it can be read once.
func (b *body) readRest(r *http.Request) (whole bool, err error) {
	var left []byte
	if b.file, err = newSpool(); err == nil {
		var n int64
		n, left, err = b.file.fill(r.Body)
		b.size += n
		if err != nil {
			return false, readFailed(r.Context(), err)
		}
		if left == nil {
			return true, nil
		}
	}
	r.Body = rejoined{io.MultiReader(b.reader(), bytes.NewReader(left), r.Body), r.Body}
	return false, nil
}

// streams says whether the body is sent on as it comes in. FastCGI has to know its length.
func (x *Exchange) streams(r *http.Request) bool {
	return x.settings.StreamRequest && (!x.settings.speaksCGI() || r.ContentLength >= 0)
}

// rejoined is a body of which a part has been read, and given back.
type rejoined struct {
	io.Reader
	io.Closer
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
