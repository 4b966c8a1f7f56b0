package substitute_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/substitute"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

var errHead = errors.New("the head is invalid")

// holding records a response, counts writes, and accepts trailer fields. If refuses is true, it rejects the head.
type holding struct {
	exchangetest.Recorder
	refuses, aborted bool
	writes           int
}

func (r *holding) Head(response *message.Response) error {
	if r.refuses {
		return errHead
	}
	return r.Recorder.Head(response)
}

func (r *holding) Write(part []byte) (int, error) {
	r.writes++
	return r.Recorder.Write(part)
}

func (r *holding) Trailer(message.Fields) error { return nil }
func (r *holding) Abort()                       { r.aborted = true }

// TestHolder checks when a held response is sent, and with which Content-Length.
func TestHolder(t *testing.T) {
	long := strings.Repeat("a", substitute.MaxHeld)
	for name, c := range map[string]struct {
		do     func(h *substitute.Holder) error
		failed bool
		length int64
		body   string
		writes int
	}{
		"parts": {func(h *substitute.Holder) error {
			_, err := h.Write([]byte("a"))
			_, failed := h.Write([]byte("b"))
			return errors.Join(err, failed)
		}, false, 2, "ab", 1},
		"no body": {func(*substitute.Holder) error { return nil }, false, 0, "", 0},
		"an incomplete body": {func(h *substitute.Holder) error {
			_, err := h.Write([]byte("a"))
			return err
		}, true, -1, "a", 1},
		"a long body": {func(h *substitute.Holder) error {
			_, err := h.Write([]byte(long))
			_, failed := h.Write([]byte("b"))
			return errors.Join(err, failed)
		}, false, -1, long + "b", 2},
		"a flush": {func(h *substitute.Holder) error {
			_, err := h.Write([]byte("a"))
			err = errors.Join(err, h.Flush())
			_, failed := h.Write([]byte("b"))
			return errors.Join(err, failed)
		}, false, -1, "ab", 2},
		"trailer fields": {func(h *substitute.Holder) error {
			_, err := h.Write([]byte("a"))
			return errors.Join(err, h.Trailer(nil))
		}, false, -1, "a", 1},
		"a source": {func(h *substitute.Holder) error {
			_, err := h.Write([]byte("a"))
			_, failed := h.ReadFrom(io.LimitReader(strings.NewReader("bc"), 1))
			return errors.Join(err, failed)
		}, false, -1, "ab", 1},
	} {
		t.Run(name, func(t *testing.T) {
			to := &holding{}
			h := &substitute.Holder{Writer: to}
			if h.Started() {
				t.Error("the response has started before Hold")
			}
			h.Hold(&message.Response{Status: 200, Length: -1})
			err := c.do(h)
			if !h.Started() || h.Sent() != int64(len(c.body)) {
				t.Errorf("started: %t, with %d bytes", h.Started(), h.Sent())
			}
			if err = errors.Join(err, h.End(c.failed), h.End(false)); err != nil {
				t.Fatal(err)
			}
			if to.Response.Length != c.length || to.Body.String() != c.body || to.writes != c.writes {
				t.Errorf("the client gets %d of %d bytes in %d writes", to.Body.Len(), to.Response.Length, to.writes)
			}
		})
	}
}

// TestHolderFails checks that an aborted response is not sent, and that a head that is rejected later is an error.
func TestHolderFails(t *testing.T) {
	to := &holding{}
	h := &substitute.Holder{Writer: to}
	h.Hold(&message.Response{Status: 200})
	if _, err := h.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	if h.Abort(); !to.aborted || h.End(true) != nil || to.Started() {
		t.Errorf("aborted: %t, the client gets %s", to.aborted, to)
	}
	for name, do := range map[string]func(h *substitute.Holder) error{
		"flush": (*substitute.Holder).Flush, "end": func(h *substitute.Holder) error { return h.End(false) },
		"trailer": func(h *substitute.Holder) error { return h.Trailer(nil) },
		"write": func(h *substitute.Holder) error {
			_, err := h.Write(make([]byte, substitute.MaxHeld+1))
			return err
		},
		"source": func(h *substitute.Holder) error {
			_, err := h.ReadFrom(strings.NewReader("a"))
			return err
		},
	} {
		h := &substitute.Holder{Writer: &holding{refuses: true}}
		h.Hold(&message.Response{Status: 200})
		if err := do(h); !errors.Is(err, errHead) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
