package mirror

import (
	"errors"
	"io"
	"sync"

	"github.com/k8singress/k8singress/internal/http/callout"
	"github.com/k8singress/k8singress/internal/process/budget"
)

// SendWith sends a copy after the body of its request was read to its end. The proxy has to read the request body from
// the returned value, which copies the data. length is the length of the body in bytes; it is negative if it is not
// known. The caller must call End when the request is over. If the body is too long, SendWith drops the copy and
// returns nil.
func (s *Sender) SendWith(call *callout.Call, ingress string, body io.Reader, length int64) *Copied {
	if length > MaxBody {
		s.Drop(Body)
		return nil
	}
	return &Copied{sender: s, call: call, ingress: ingress, source: body, length: length,
		quota: s.memory.Share(call.Namespace, ingress)}
}

// Copied is a request body that is copied while it is read.
type Copied struct {
	sender  *Sender
	call    *callout.Call
	ingress string
	source  io.Reader
	length  int64

	// mu is needed because the body may be read by another goroutine than the goroutine that serves the request.
	mu    sync.Mutex
	done  bool
	quota *budget.Share
	// charged is the number of bytes that the copy has taken from quota.
	charged int64
}

// Read implements io.Reader.
func (c *Copied) Read(b []byte) (int, error) {
	n, err := c.source.Read(b)
	c.copy(b[:n], err)
	return n, err
}

// Limit sets the maximum size of the body in bytes, if the source supports a limit. Reads of a longer body fail.
func (c *Copied) Limit(limit int64) {
	if limited, ok := c.source.(interface{ Limit(limit int64) }); ok {
		limited.Limit(limit)
	}
}

// Close implements io.Closer.
func (c *Copied) Close() error {
	if closer, ok := c.source.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// copy copies the data that was read, and sends the copy after the last part.
func (c *Copied) copy(part []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.done:
	case !c.grow(len(part)):
		c.drop()
	default:
		c.call.Body = append(c.call.Body, part...)
		switch {
		case errors.Is(err, io.EOF) && c.length < 0 || int64(len(c.call.Body)) == c.length:
			c.done = true
			c.sender.send(c.call, c.ingress, c.release)
		case err != nil:
			c.drop()
		}
	}
}

const firstBytes = 4 << 10

// grow ensures capacity for n more bytes. It returns false if there is not enough room. Memory is taken as the data
// arrives, and not for the announced length.
func (c *Copied) grow(n int) bool {
	have := len(c.call.Body)
	if have+n <= cap(c.call.Body) {
		return true
	}
	if have+n > MaxBody || c.length >= 0 && int64(have+n) > c.length {
		return false
	}
	size := min(max(2*cap(c.call.Body), have+n, firstBytes), MaxBody)
	if more := int64(size) - c.charged; !c.quota.Take(more) {
		return false
	}
	c.charged = int64(size)
	c.call.Body = append(make([]byte, 0, size), c.call.Body...)
	return true
}

func (c *Copied) drop() {
	c.done = true
	c.call.Body = nil
	c.release()
	c.sender.Drop(Body)
}

func (c *Copied) release() { c.quota.Give(c.charged) }

// End drops the copy if the body was not read to its end.
func (c *Copied) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done {
		c.drop()
	}
}
