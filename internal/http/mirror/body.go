package mirror

import (
	"errors"
	"io"
	"sync"

	"github.com/k8singress/k8singress/internal/http/callout"
	"github.com/k8singress/k8singress/internal/process/budget"
)

// SendWith sends a copy of a request, including its body. length is the length of the body in bytes, or negative if it
// is not known. The proxy must read the request body through the returned Copied, which records it and sends the copy
// when the body was read completely. The caller must call End when the request has ended. If length exceeds MaxBody,
// SendWith drops the copy and returns nil.
func (s *Sender) SendWith(call *callout.Call, ingress string, body io.Reader, length int64) *Copied {
	if length > MaxBody {
		s.Drop(Body)
		return nil
	}
	return &Copied{sender: s, call: call, ingress: ingress, source: body, length: length,
		quota: s.memory.Share(call.Namespace, ingress)}
}

// Copied wraps the body of a mirrored request. It keeps a copy of all data that is read through it.
type Copied struct {
	sender  *Sender
	call    *callout.Call
	ingress string
	source  io.Reader
	length  int64

	// mu is needed because the body may be read by one goroutine while another goroutine calls End.
	mu    sync.Mutex
	done  bool
	quota *budget.Share
	// charged is the number of bytes that the recorded body has reserved in quota, which is the Ingress's share of the
	// memory budget.
	charged int64
}

// Read implements io.Reader.
func (c *Copied) Read(b []byte) (int, error) {
	n, err := c.source.Read(b)
	c.copy(b[:n], err)
	return n, err
}

// Limit sets the maximum size of the request body in bytes. Reads beyond it fail. It has no effect if the wrapped body
// does not support limits.
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

// copy appends data that was read from the request body to the copy. At the end of the body, it sends the copy.
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

// grow makes sure that the buffer for the copied body has capacity for n more bytes. It returns false if the body is
// too long or the memory budget is exhausted. Memory is allocated as data arrives, because the client may never send as
// much data as announced.
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

// End must be called when the request has ended. If the body was not read completely by then, End drops the copy.
func (c *Copied) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done {
		c.drop()
	}
}
