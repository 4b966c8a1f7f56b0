//go:build race || poison

package pools_test

import (
	"bytes"
	"strings"
	"testing"
	"unsafe"

	"github.com/k8singress/k8singress/internal/model/pools"
)

// mustPanic checks that do panics with a message that contains all of want.
func mustPanic(t *testing.T, do func(), want ...string) {
	t.Helper()
	text := func() (text string) {
		defer func() { text, _ = recover().(string) }()
		do()
		return ""
	}()
	for _, part := range want {
		if !strings.Contains(text, part) {
			t.Errorf("the panic says %q; it has to contain %q", text, part)
		}
	}
}

// alias returns a copy of a handle, as faulty code would create it.
func alias(h *pools.Buffer) pools.Buffer {
	return *(*pools.Buffer)(unsafe.Pointer(h)) //nolint:govet // Copying a handle is the fault under test.
}

func releaseOne(h *pools.Buffer) { h.Release() }

func TestSecondReleasePanics(t *testing.T) {
	h := pools.NewBuffers("replies", 16).Get()
	releaseOne(&h)
	mustPanic(t, h.Release, "replies was released a second time", "releaseOne")
	if h.Held() {
		t.Error("the handle owns its buffer after the release")
	}
}

func TestUseAfterReleasePanics(t *testing.T) {
	h := pools.NewBuffers("replies", 16).Get()
	releaseOne(&h)
	mustPanic(t, func() { h.Bytes() }, "replies was used after its release", "releaseOne")
	mustPanic(t, func() { h.Replace(nil) }, "replies was used after its release")
	mustPanic(t, func() { h.Move() }, "replies was moved after its release")
}

func TestUseOfAZeroHandlePanics(t *testing.T) {
	var h pools.Buffer
	mustPanic(t, func() { h.Bytes() }, "owns nothing")
}

// TestStaleHandlePanics checks that a copy of a handle cannot be used after the buffer has got its next owner.
func TestStaleHandlePanics(t *testing.T) {
	buffers := pools.NewBuffers("replies", 16)
	h := buffers.Get()
	stale := alias(&h)
	h.Release()
	next := buffers.Get()
	if !stale.Held() {
		t.Fatal("the copy knows of the release: this test does not show what it is for")
	}
	mustPanic(t, func() { stale.Bytes() }, "replies was used after its release")
	mustPanic(t, stale.Release, "replies was released a second time")
	copy(next.Bytes(), "text")
	next.Release()
}

func TestReleasedMemoryIsOverwritten(t *testing.T) {
	h := pools.NewBuffers("replies", 10<<10).Get()
	text := h.Bytes()
	copy(text[len(text)-4:], "text")
	h.Release()
	if want := bytes.Repeat(text[:1], len(text)); !bytes.Equal(text, want) || text[0] == 0 {
		t.Errorf("the released buffer ends with %q", text[len(text)-4:])
	}
	structs := pools.NewStructs[record]("structs").Get()
	r := structs.Value()
	r.text = "text"
	structs.Release()
	if r.text != "" {
		t.Errorf("the released struct has %+v", *r)
	}
	poisoned := pools.New[record]("records", nil, nil).Poison(func(r *record) { r.text = "poison" }).Get()
	r = poisoned.Value()
	poisoned.Release()
	if r.text != "poison" {
		t.Errorf("the released value has %+v", *r)
	}
}

// TestNewMemoryIsOverwritten checks that new buffers are poisoned, too, so that reading unwritten memory is noticed.
func TestNewMemoryIsOverwritten(t *testing.T) {
	h := pools.NewBuffers("replies", 16).Get()
	if h.Bytes()[15] == 0 {
		t.Error("a new buffer begins as zero")
	}
	u := pools.Unpooled("head", 16)
	text := u.Bytes()
	clear(text)
	u.Release()
	if text[0] == 0 {
		t.Error("a released buffer that is used by one owner alone was not overwritten")
	}
	mustPanic(t, u.Release, "head was released a second time")
}

// TestWriteAfterReleasePanics checks that a write to a released buffer is detected when the buffer gets its next owner.
// With the race detector, sync.Pool drops some values, so the test tries many times.
func TestWriteAfterReleasePanics(t *testing.T) {
	buffers, structs := pools.NewBuffers("replies", 16), pools.NewStructs[record]("structs")
	mustPanic(t, func() {
		for range 1000 {
			h := buffers.Get()
			text := h.Bytes()
			releaseOne(&h)
			text[3] = 0
		}
	}, "replies was written to after its release", "releaseOne")
	mustPanic(t, func() {
		for range 1000 {
			h := structs.Get()
			r := h.Value()
			h.Release()
			r.text = "late"
		}
	}, "structs was written to after its release")
}
