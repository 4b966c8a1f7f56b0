package substitute

import (
	"io"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/pools"
)

// MaxHeld is the maximum size of the body that a Holder holds back.
const MaxHeld = 16 << 10

var bodies = pools.NewBuffers("substitute: body of 16 KiB", MaxHeld)

// Holder is a message.Writer that can hold back a response to its end, because only then is the length of the body
// known. The client gets the response with a Content-Length and, usually, with a single write. A body that is larger
// than MaxHeld, or that is flushed before its end, is sent without a Content-Length. The caller must call End.
type Holder struct {
	message.Writer
	// holding is true from Hold until the head is written. head is the held head, and body[:size] the held body.
	holding bool
	head    message.Response
	body    pools.Buffer
	size    int
}

// Hold begins to hold back a response. It is called instead of Head. The response must not be changed afterwards.
func (h *Holder) Hold(head *message.Response) { h.holding, h.head = true, *head }

// Write writes the next part of the body.
func (h *Holder) Write(part []byte) (int, error) {
	if h.holding && len(part) <= MaxHeld-h.size {
		if !h.body.Held() {
			h.body = bodies.Get()
		}
		h.size += copy(h.body.Bytes()[h.size:], part)
		return len(part), nil
	}
	if err := h.send(-1); err != nil {
		return 0, err
	}
	return h.Writer.Write(part)
}

// ReadFrom writes all data from source.
func (h *Holder) ReadFrom(source io.Reader) (int64, error) {
	if err := h.send(-1); err != nil {
		return 0, err
	}
	return h.Writer.ReadFrom(source)
}

// Flush sends the response as far as it is known.
func (h *Holder) Flush() error {
	if err := h.send(-1); err != nil {
		return err
	}
	return h.Writer.Flush()
}

// Trailer ends the body with trailer fields.
func (h *Holder) Trailer(fields message.Fields) error {
	if err := h.send(-1); err != nil {
		return err
	}
	return h.Writer.Trailer(fields)
}

// Abort discards what is held back, and aborts the response.
func (h *Holder) Abort() {
	h.discard()
	h.Writer.Abort()
}

// Started reports whether the response has a head, even if the head is held back.
func (h *Holder) Started() bool { return h.holding || h.Writer.Started() }

// Sent returns the number of bytes of the body, including held bytes.
func (h *Holder) Sent() int64 { return h.Writer.Sent() + int64(h.size) }

// End ends the response. If failed is true, the body is incomplete, so the client gets no Content-Length.
func (h *Holder) End(failed bool) error {
	if failed {
		return h.send(-1)
	}
	return h.send(int64(h.size))
}

// send writes the head with the given length of the body, and the held part of the body. It does nothing if the head is
// not held back.
func (h *Holder) send(length int64) error {
	if !h.holding {
		return nil
	}
	h.head.Length = length
	err := h.Writer.Head(&h.head)
	if err == nil && h.size > 0 {
		_, err = h.Writer.Write(h.body.Bytes()[:h.size])
	}
	h.discard()
	return err
}

func (h *Holder) discard() {
	h.holding, h.size = false, 0
	if h.body.Held() {
		h.body.Release()
	}
}
