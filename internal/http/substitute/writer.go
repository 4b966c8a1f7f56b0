package substitute

import (
	"errors"
	"io"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/pools"
)

// Writer replaces texts in the body of a response. It changes nothing before Begin. The caller must call End.
//
// At each position of the body, the first text of the list that occurs there is replaced. The search continues behind
// it. A replacement is not searched. Unlike nginx, Writer also finds a text at the end of a body that is the beginning
// of a longer text of the list.
type Writer struct {
	message.Writer
	// texts are the texts to find. It is nil if the rest of the body is not changed. replacements are at the same
	// indexes.
	texts        *Texts
	replacements [][]byte
	// If repeat is false, each text is replaced once. used is a set of bits for the texts that were replaced, and
	// unused the number of the other texts.
	repeat bool
	used   [MaxTexts/64 + 1]uint64
	unused int
	// left is the number of bytes that the caller has yet to write. It is negative if the length of the body is not
	// known.
	left int64
	// begun is true after Begin. ended is true if the response has ended after that.
	begun, ended bool

	// memory is taken from the pool when it is needed. Its field held begins with the last held bytes of the body that
	// the caller has written, which may be the beginning of a text. out is the number of bytes in its field out.
	memory    pools.Handle[memory]
	held, out int
	// node is the node for the end of the bytes that were searched. It always has children.
	node int32
	pass
	// offset is the position in the body of the first byte of pass.data.
	offset int
	// pending is the number of marks in memory. If it is not 0, next is the index in pass.data of the first byte that
	// may have a mark.
	pending, next int
}

// pass is a search in a part of the body.
type pass struct {
	// data begins with the bytes that were held. data[:written] was written or replaced, and data[:at] was searched.
	data        []byte
	written, at int
	known       nearest
}

// memory is the memory of a Writer.
type memory struct {
	// marks has the first text, by order of the list, that occurs at a position of the body, if it is not yet known
	// whether it is replaced: a text that began before it, or a text at the same position that comes before it in the
	// list, may still follow. The index is the position modulo the length.
	marks [MaxText]textNumber
	held  [16 << 10]byte
	// out joins short writes.
	out [8 << 10]byte
}

var memories = pools.New("substitute: memory", nil, func(m *memory) { m.marks = [MaxText]textNumber{} }).
	Poison(func(m *memory) {
		for _, data := range [][]byte{m.held[:], m.out[:]} {
			for i := range data {
				data[i] = 0xdb
			}
		}
	})

var (
	errEnded   = errors.New("the response has ended")
	errShort   = errors.New("the body of the response is shorter than its Content-Length")
	errTooMuch = errors.New("the response body is longer than its Content-Length")
)

// NewWriter returns a Writer that writes to w.
func NewWriter(w message.Writer) Writer { return Writer{Writer: w, left: -1} }

// Begin starts to replace texts in the body that follows. replacements has the replacement for each text. If repeat is
// false, only the first occurrence of each text is replaced. length is the length of the body that the caller writes,
// or negative if it is not known.
func (w *Writer) Begin(texts *Texts, replacements [][]byte, repeat bool, length int64) {
	w.texts, w.replacements, w.repeat, w.unused = texts, replacements, repeat, len(texts.lengths)
	w.left, w.begun = length, true
}

// Write writes the next part of the body.
func (w *Writer) Write(part []byte) (int, error) {
	if err := w.account(len(part)); err != nil {
		return 0, err
	}
	for rest := part; len(rest) > 0; {
		var err error
		switch {
		case w.texts == nil:
			_, err = w.Writer.Write(rest)
			rest = nil
		case w.held == 0:
			err = w.search(rest, false)
			rest = nil
		default:
			held := &w.memory.Value().held
			n := copy(held[w.held:], rest)
			err = w.search(held[:w.held+n], false)
			rest = rest[n:]
		}
		if err != nil {
			return 0, err
		}
	}
	return len(part), nil
}

// account subtracts n bytes of the body from w.left. It returns an error if they must not be written.
func (w *Writer) account(n int) error {
	switch {
	case w.ended:
		return errEnded
	case w.left < 0:
	case int64(n) > w.left:
		return errTooMuch
	default:
		w.left -= int64(n)
	}
	return nil
}

// ReadFrom writes all data from source. If the rest of the body is not changed, it lets the wrapped writer read from
// source.
func (w *Writer) ReadFrom(source io.Reader) (done int64, err error) {
	for w.texts != nil {
		held := &w.space().held
		n, err := source.Read(held[w.held:])
		if failed := w.account(n); failed != nil {
			return done, failed
		}
		if failed := w.search(held[:w.held+n], false); failed != nil {
			return done, failed
		}
		switch done += int64(n); {
		case errors.Is(err, io.EOF):
			return done, nil
		case err != nil:
			return done, err
		}
	}
	if w.ended {
		return done, errEnded
	}
	n, err := w.Writer.ReadFrom(source)
	if err == nil {
		err = w.account(int(n))
	}
	return done + n, err
}

// Trailer ends the body and writes the trailer fields.
func (w *Writer) Trailer(fields message.Fields) error {
	if err := w.finish(); err != nil {
		return err
	}
	return w.Writer.Trailer(fields)
}

// Abort aborts the response, so that the client notices that the response is incomplete.
func (w *Writer) Abort() {
	w.leave()
	w.Writer.Abort()
}

// End ends the response. If failed is true, the held end of the body is not written, because the body is incomplete. If
// End returns an error, the caller must abort the response.
func (w *Writer) End(failed bool) (err error) {
	if !failed {
		err = w.finish()
	}
	w.leave()
	return err
}

// finish writes the end of the body.
func (w *Writer) finish() (err error) {
	if w.texts != nil && w.held > 0 {
		err = w.search(w.memory.Value().held[:w.held], true)
	}
	if w.texts = nil; err == nil && w.left > 0 {
		err = errShort
	}
	return err
}

// leave discards the held bytes, and releases the memory.
func (w *Writer) leave() {
	w.texts, w.ended, w.held, w.out, w.pass = nil, w.begun, 0, 0, pass{}
	w.release()
}

func (w *Writer) release() {
	if w.memory.Held() {
		w.memory.Release()
	}
}

// space returns the memory.
func (w *Writer) space() *memory {
	if !w.memory.Held() {
		w.memory = memories.Get()
	}
	return w.memory.Value()
}
