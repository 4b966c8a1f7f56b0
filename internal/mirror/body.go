package mirror

import (
	"errors"
	"io"
	"sync"

	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/callout"
)

// SendWith sends a copy once the body of its request has been read to the end, by who else reads it: it returns what is to be read in place of
// that body, and copies what comes by. length is that of the body, less than zero where that is not known. End is to be called when the
// request is over. Where the body is too long it returns nil, and drops the copy.
func (s *Sender) SendWith(call *callout.Call, ingress string, body io.Reader, length int64) *Copied {
	if length > MostBody {
		s.Drop(Body)
		return nil
	}
	return &Copied{sender: s, call: call, ingress: ingress, source: body, length: length, room: s.memory.Share(call.Namespace, ingress)}
}

// Copied is the body of a request that is copied while it is read.
type Copied struct {
	sender  *Sender
	call    *callout.Call
	ingress string
	source  io.Reader
	length  int64

	// mu is there because a body may be read in another goroutine than that of its request.
	mu   sync.Mutex
	over bool
	room *budget.Share
	// taken is how much of the room the copy has.
	taken int64
}

// Read implements io.Reader.
func (c *Copied) Read(b []byte) (int, error) {
	n, err := c.source.Read(b)
	c.copy(b[:n], err)
	return n, err
}

// Limit has the body end with an error where it is longer than it may be, if it knows how to.
func (c *Copied) Limit(most int64) {
	if limited, ok := c.source.(interface{ Limit(most int64) }); ok {
		limited.Limit(most)
	}
}

// Close implements io.Closer.
func (c *Copied) Close() error {
	if closer, ok := c.source.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// copy copies what has been read, and sends the copy when that was all.
func (c *Copied) copy(part []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
	case !c.grow(len(part)):
		c.drop()
	default:
		c.call.Body = append(c.call.Body, part...)
		switch {
		case errors.Is(err, io.EOF) && c.length < 0 || int64(len(c.call.Body)) == c.length:
			c.over = true
			c.sender.send(c.call, c.ingress, c.release)
		case err != nil:
			c.drop()
		}
	}
}

const firstBytes = 4 << 10

// grow makes room for n more bytes. It returns false where there is none. A client that says how much it will send has that only once it
// sends it.
func (c *Copied) grow(n int) bool {
	have := len(c.call.Body)
	if have+n <= cap(c.call.Body) {
		return true
	}
	if have+n > MostBody || c.length >= 0 && int64(have+n) > c.length {
		return false
	}
	size := min(max(2*cap(c.call.Body), have+n, firstBytes), MostBody)
	if more := int64(size) - c.taken; !c.room.Take(more) {
		return false
	}
	c.taken = int64(size)
	c.call.Body = append(make([]byte, 0, size), c.call.Body...)
	return true
}

func (c *Copied) drop() {
	c.over = true
	c.call.Body = nil
	c.release()
	c.sender.Drop(Body)
}

func (c *Copied) release() { c.room.Give(c.taken) }

// End drops the copy of a body that has not come to its end.
func (c *Copied) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.drop()
	}
}
