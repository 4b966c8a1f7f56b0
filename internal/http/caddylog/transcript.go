package caddylog

import (
	"io"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
)

// transcript is a Writer that keeps what a line in Caddy's format says about a request and its response, and that an
// Exchange does not keep: the request as the client has sent it, and the header fields of the response.
type transcript struct {
	message.Writer
	request  message.Request
	body     countedBody
	response message.Fields
	// room has space for the fields of the request, followed by the fields of the response.
	room [roomForFields]message.Field
}

// roomForFields is the number of fields that a transcript can hold without another allocation. Browsers send about 12
// fields, and most responses have fewer than 8.
const roomForFields = 20

// Watch must be called with each request before it is served. It returns the Writer to use for the response, and
// replaces the body of the request, if there is one.
func (*Log) Watch(w message.Writer, r *message.Request) message.Writer {
	t := &transcript{Writer: w, request: *r}
	// Filters and Caddy handlers change the fields in place.
	t.request.Fields = append(t.room[:0], r.Fields...)
	if n := len(r.Fields); n < len(t.room) {
		t.response = t.room[n:n]
	}
	if r.Body != nil {
		t.body.Reader = r.Body
		r.Body = &t.body
	}
	return t
}

// transcriptOf returns the transcript of a request. If Watch did not get the request, because it was rejected before it
// was served or because the configuration has changed since, the transcript has no response.
func transcriptOf(x *exchange.Exchange) *transcript {
	if t, ok := x.Writer.(*transcript); ok {
		return t
	}
	return &transcript{Writer: x.Writer, request: *x.Request}
}

// Head implements message.Writer.
func (t *transcript) Head(response *message.Response) error {
	t.keep(response)
	return t.Writer.Head(response)
}

// Announce does what the method of message.HTTPWriter does. It must only be called if the Writer that Watch got is an
// HTTPWriter.
func (t *transcript) Announce(response *message.Response) {
	t.keep(response)
	t.Writer.(message.HTTPWriter).Announce(response)
}

// Answered does what the method of message.HTTPWriter does, under the same condition as Announce.
func (t *transcript) Answered(response *message.Response, sent int64) {
	t.keep(response)
	t.Writer.(message.HTTPWriter).Answered(response, sent)
}

// keep copies the header fields of a response, because their memory is used again for the next response.
func (t *transcript) keep(response *message.Response) {
	t.response = append(t.response[:0], response.Fields...)
	if response.Length >= 0 && response.Status >= http.StatusOK && response.Status != http.StatusNoContent {
		t.response = append(t.response, message.ContentLength.Field(strconv.FormatInt(response.Length, 10)))
	}
}

// countedBody is a request body that counts its bytes.
type countedBody struct {
	io.Reader
	// n is atomic because another goroutine may still read the body when the request ends.
	n atomic.Int64
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.n.Add(int64(n))
	return n, err
}

// Close closes a body that net/http has read.
func (b *countedBody) Close() error {
	if c, ok := b.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Limit limits the size of the body, if the server can do that while it reads.
func (b *countedBody) Limit(limit int64) {
	if l, ok := b.Reader.(interface{ Limit(limit int64) }); ok {
		l.Limit(limit)
	}
}

// read returns the number of bytes that were read.
func (b *countedBody) read() int64 { return b.n.Load() }
