package compress

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/pools"
	"github.com/k8singress/k8singress/internal/process/budget"
)

// Writer compresses the body of a response if the response may be compressed. The caller must call End and then Close.
type Writer struct {
	message.Writer
	policy   *Policy
	accepted [2]*coding
	// namespace returns the namespace of the backend that responds. share is this namespace's share of the memory
	// budget for encoders. taken is the number of bytes that this Writer has reserved in share.
	namespace func() string
	share     *budget.Share
	taken     int64
	// encoder compresses the body. It is the zero Handle if the body is not compressed.
	encoder pools.Handle[encoder]
	// left is the number of uncompressed body bytes that have yet to be written. It is negative if the length of the
	// body is not known.
	left int64
	// held is true if the encoder contains data that has not been sent yet.
	held  bool
	ended bool
}

var (
	errEnded   = errors.New("the compressed response has ended")
	errShort   = errors.New("the body of the response is shorter than its Content-Length")
	errTooMuch = errors.New("the response body is longer than its Content-Length")
)

// Writer returns a compressing writer for the response to r, or nil if responses to r are never compressed. r must be
// the request as the client sent it. namespace returns the namespace of the backend that responds; it is called when
// the head of the response is written. p may be nil.
func (p *Policy) Writer(w message.Writer, r *message.Request, namespace func() string) *Writer {
	if p == nil || r.Method == http.MethodHead || r.UpgradeProtocol() != "" {
		return nil
	}
	return &Writer{Writer: w, policy: p, accepted: p.accepted(r), namespace: namespace}
}

// Head decides whether to compress the body, and writes the head of the response. If the decision depends on
// Accept-Encoding, it adds Vary, even if this response is not compressed.
func (w *Writer) Head(a *message.Response) error {
	if !compressible(a) {
		return w.Writer.Head(a)
	}
	with, depends := w.choose(a)
	if !depends {
		return w.Writer.Head(a)
	}
	head := *a
	head.Fields = append(message.Fields(nil), a.Fields...)
	if vary, _ := head.Fields.Joined("Vary"); !names(vary, "Accept-Encoding") && !names(vary, "*") {
		head.Fields.Add(message.NewField("Vary", "Accept-Encoding"))
	}
	if with == nil {
		return w.Writer.Head(&head)
	}
	head.Length = -1
	head.Fields.Remove(message.Other, "Accept-Ranges")
	head.Fields.WeakenETag()
	head.Fields.Add(message.NewField("Content-Encoding", with.name))
	if err := w.Writer.Head(&head); err != nil {
		return err
	}
	w.encoder, w.left = with.begin(w.Writer), a.Length
	return nil
}

// choose returns the coding to use for a response, or nil if the response must not be compressed. It also reserves the
// memory for the encoder. If the budget does not have enough memory left for a coding, the next coding is tried.
// depends is true if the result depends on the client's Accept-Encoding.
func (w *Writer) choose(a *message.Response) (with *coding, depends bool) {
	full := false
	for i, c := range w.policy.codings {
		if !c.takes(a) {
			continue
		}
		depends = true
		switch accepted := w.accepted[i]; {
		case with != nil || accepted == nil:
		case w.take(accepted.bytes):
			with = accepted
		default:
			full = true
		}
	}
	if full && with == nil {
		uncompressed.Add(1)
	}
	return with, depends
}

// take reserves the memory for an encoder, in bytes, in the memory budget. It returns false if the budget is exhausted.
func (w *Writer) take(bytes int64) bool {
	if w.share == nil {
		w.share = encoderMemory().Share(w.namespace(), "")
	}
	if !w.share.Take(bytes) {
		return false
	}
	w.taken += bytes
	return true
}

// Close returns the memory of the encoder to the budget. It must also be called after a panic.
func (w *Writer) Close() {
	if w.taken > 0 {
		w.share.Give(w.taken)
		w.taken = 0
	}
}

func names(list, name string) bool {
	for entry := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.Trim(entry, " \t"), name) {
			return true
		}
	}
	return false
}

// Write writes the next part of the body, and compresses it if the body is compressed.
func (w *Writer) Write(part []byte) (int, error) {
	switch {
	case w.ended:
		return 0, errEnded
	case !w.encoder.Held():
		return w.Writer.Write(part)
	case w.left >= 0 && int64(len(part)) > w.left:
		return 0, errTooMuch
	}
	n, err := w.encoder.Value().to.Write(part)
	w.held = w.held || n > 0
	if w.left >= 0 {
		w.left -= int64(n)
	}
	return n, err
}

// ReadFrom compresses all data from source. If the body is not compressed, it lets the wrapped writer read from source.
func (w *Writer) ReadFrom(source io.Reader) (int64, error) {
	if !w.encoder.Held() && !w.ended {
		return w.Writer.ReadFrom(source)
	}
	return io.Copy(struct{ io.Writer }{w}, source)
}

// Flush compresses and sends all data that was written so far.
func (w *Writer) Flush() error {
	if w.ended {
		return errEnded
	}
	if w.held {
		if err := w.encoder.Value().flush(); err != nil {
			return err
		}
		w.held = false
	}
	return w.Writer.Flush()
}

// Trailer ends the body and writes the trailer fields.
func (w *Writer) Trailer(fields message.Fields) error {
	if err := w.finish(); err != nil {
		return err
	}
	return w.Writer.Trailer(fields)
}

func (w *Writer) finish() error {
	switch {
	case !w.encoder.Held():
		return nil
	case w.left > 0:
		return errShort
	}
	err := w.encoder.Value().close()
	if err == nil {
		w.encoder.Release()
	}
	w.leave()
	return err
}

// Abort aborts the response, so that the client notices that the response is incomplete.
func (w *Writer) Abort() {
	w.leave()
	w.Writer.Abort()
}

// leave marks the response as ended. If the encoder was not returned to the pool, it is left to the garbage collector.
func (w *Writer) leave() { w.encoder, w.held, w.ended = pools.Handle[encoder]{}, false, true }

// End ends the response. If failed is true, the compressed body is left incomplete, so that the client notices the
// failure. Write must not be called after End. If End returns an error, the caller must abort the response.
func (w *Writer) End(failed bool) (err error) {
	if !failed {
		err = w.finish()
	}
	w.leave()
	return err
}
