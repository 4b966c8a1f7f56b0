package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/k8singress/k8singress/internal/model/pools"
)

// pieces are the buffers for reading bodies. A TLS record has at most 16 KiB.
var pieces = pools.NewBuffers("webhook/pieces", 32<<10)

// reading reads the body of one review, and holds what the review uses of the limits of all reviews together.
type reading struct {
	*Handler
	decoder *decoder
	// size is the number of bytes that were read.
	size int64
	// memory is the part of maxMemory that the review holds.
	memory int64
	// leave is the function that enter has returned. It is nil for a body that is not large.
	leave func(time.Duration)
}

// read reads the body and decodes what a review needs. If the size of the body is unknown, the review counts as large
// once more than largeBody bytes were read.
func (g *reading) read(ctx context.Context, r *http.Request) error {
	buffer := pieces.Get()
	err := error(nil)
	for err == nil {
		if err = g.admit(ctx, max(r.ContentLength, g.size)); err == nil {
			err = g.piece(r.Body, buffer.Bytes())
		}
	}
	buffer.Release()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// admit waits until a review with a body of the given size may continue.
func (g *reading) admit(ctx context.Context, size int64) (err error) {
	if size > maxBody {
		return errLarge
	}
	g.decoder.work.paced = size > ordinaryBody
	if size > largeBody && g.leave == nil {
		g.leave, err = g.large.enter(ctx)
	}
	return err
}

// piece reads and decodes one piece. It returns io.EOF at the end of the body. While it waits for the client, other
// reviews may work.
func (g *reading) piece(from io.Reader, buffer []byte) error {
	select {
	case <-g.decoder.work.ended:
		return errLate // The review has waited for others, and the client for the review.
	default:
	}
	n, err := from.Read(buffer)
	g.size += int64(n)
	switch {
	case g.size > maxBody:
		return errLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errNoBody
	case err != nil && !errors.Is(err, io.EOF):
		return bad("cannot read the body: %v", err)
	}
	if err := g.decoder.work.start(); err != nil {
		return err
	}
	failed := g.decoder.write(buffer[:n])
	if failed == nil {
		failed = g.reserve()
	}
	g.decoder.work.stop()
	if failed != nil {
		return failed
	}
	return err
}

// reserve reserves memory for what was decoded. It does not wait, because reviews that hold a part of the memory would
// wait for each other.
func (g *reading) reserve() error {
	size, values := g.decoder.filter.Kept()
	more := int64(size+values*perValue) - g.memory
	if more <= 0 {
		return nil
	}
	more = (more + memoryStep - 1) / memoryStep * memoryStep
	if !g.Handler.memory.TryAcquire(more) {
		return errBusy
	}
	g.memory += more
	return nil
}

// end gives back what the review uses of the limits. It is also called after a panic.
func (g *reading) end() {
	g.Handler.memory.Release(g.memory)
	g.decoder.work.stop()
	if g.leave != nil {
		g.leave(g.decoder.work.total)
	}
}
