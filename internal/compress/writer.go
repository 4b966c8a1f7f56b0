package compress

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/pools"
)

// Writer compresses the body of an answer if the head of the answer says that it may. End and then Close have to be
// called.
type Writer struct {
	message.Writer
	policy   *Policy
	accepted [2]*coding
	// namespace returns the namespace of the backend that responds. taken bytes of encoders count for share.
	namespace func() string
	share     *budget.Share
	taken     int64
	// encoder owns nothing while the body goes out as it is.
	encoder pools.Handle[encoder]
	// left is how much of the body is to come; less than zero is not known.
	left int64
	// held says that the encoder has something that has not been sent.
	held  bool
	ended bool
}

var (
	errEnded   = errors.New("the compressed answer has ended")
	errShort   = errors.New("the body of the answer is shorter than its head says")
	errTooMuch = errors.New("the body of the answer is longer than its head says")
)

// Writer returns a writer for the answer to a request as it comes from the client; nil is that no answer to it is compressed. p may be nil.
// namespace returns the namespace of the backend that responds, once the head of the response is written.
func (p *Policy) Writer(w message.Writer, r *message.Request, namespace func() string) *Writer {
	if p == nil || r.Method == http.MethodHead || r.NamesUpgrade() != "" {
		return nil
	}
	return &Writer{Writer: w, policy: p, accepted: p.accepted(r), namespace: namespace}
}

// Head decides whether the body is compressed. Caches are told that this depends on the client in any case.
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
	weaken(&head.Fields)
	head.Fields.Add(message.NewField("Content-Encoding", with.name))
	if err := w.Writer.Head(&head); err != nil {
		return err
	}
	w.encoder, w.left = with.begin(w.Writer), a.Length
	return nil
}

// choose returns the coding for an answer, which is nil for none, and whether another client would get another answer.
// It takes the memory for an encoder: without room, the next coding is tried.
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

// take takes the memory of an encoder. It returns false if there is no room.
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

// Close gives back the memory of the encoder. It is called after a panic, too.
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

// weaken makes the entity tag one for the same content in other bytes, as nginx does.
func weaken(fields *message.Fields) {
	const name = "ETag"
	switch tag, ok := fields.Joined(name); {
	case !ok || strings.HasPrefix(tag, "W/"):
	case strings.HasPrefix(tag, `"`):
		fields.Set(message.NewField(name, "W/"+tag))
	default:
		fields.Remove(message.KindOf(name), name)
	}
}

// Write writes a part of the body.
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

// ReadFrom compresses what is read, or leaves it to the writer behind this one.
func (w *Writer) ReadFrom(source io.Reader) (int64, error) {
	if !w.encoder.Held() && !w.ended {
		return w.Writer.ReadFrom(source)
	}
	return io.Copy(struct{ io.Writer }{w}, source)
}

// Flush sends what has been written, so that each piece of an answer arrives when it comes.
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

// Trailer ends the body.
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

// Abort ends the answer where it is.
func (w *Writer) Abort() {
	w.leave()
	w.Writer.Abort()
}

// leave ends the body. An encoder that has not been released goes to the garbage collector.
func (w *Writer) leave() { w.encoder, w.held, w.ended = pools.Handle[encoder]{}, false, true }

// End says that the answer is over; failed says that it has gone wrong, so that the client has to notice that the end is missing. Nothing can
// be written any more. After an error the answer has to be aborted.
func (w *Writer) End(failed bool) (err error) {
	if !failed {
		err = w.finish()
	}
	w.leave()
	return err
}
