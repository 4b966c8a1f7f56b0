package pools_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/model/pools"
)

// record is a value that keeps memory for its next owner.
type record struct {
	kept []int
	text string
}

var records = pools.New("records", func(r *record) { r.kept = make([]int, 0, 8) }, func(r *record) { r.text = "" })

func TestNewCreatesAndCleans(t *testing.T) {
	for range 100 {
		h := records.Get()
		r := h.Value()
		if r.text != "" || cap(r.kept) != 8 {
			t.Fatalf("an owner gets %+v with room for %d", *r, cap(r.kept))
		}
		r.text = "of the last owner"
		h.Release()
	}
}

func TestStructsBeginAsZero(t *testing.T) {
	structs := pools.NewStructs[record]("structs")
	for range 100 {
		h := structs.Get()
		if r := h.Value(); r.text != "" || r.kept != nil {
			t.Fatalf("an owner gets %+v", *r)
		}
		*h.Value() = record{kept: []int{1}, text: "of the last owner"}
		h.Release()
	}
}

// TestTwoOwnersHaveTwoValues checks that no value has a second owner before its release.
func TestTwoOwnersHaveTwoValues(t *testing.T) {
	buffers := pools.NewBuffers("buffers", 16)
	for range 100 {
		one, other := buffers.Get(), buffers.Get()
		if len(one.Bytes()) != 16 || &one.Bytes()[0] == &other.Bytes()[0] {
			t.Fatal("two owners have one buffer")
		}
		one.Release()
		other.Release()
	}
}

func TestMovePassesTheValueOn(t *testing.T) {
	buffers := pools.NewBuffers("buffers", 16)
	first := buffers.Get()
	copy(first.Bytes(), "text")
	second := first.Move()
	if first.Held() || !second.Held() || string(second.Bytes()[:4]) != "text" {
		t.Error("the second handle does not own the buffer alone")
	}
	first.Release() // It owns nothing, so this has no effect.
	if string(second.Bytes()[:4]) != "text" {
		t.Error("the buffer was released by a handle that had moved it on")
	}
	second.Release()
	if second.Held() {
		t.Error("a handle owns its buffer after the release")
	}
}

func TestReplacedBufferStays(t *testing.T) {
	buffers := pools.NewBuffers("buffers", 4)
	h := buffers.Get()
	h.Replace(append(h.Bytes()[:0], "longer than four bytes"...))
	if string(h.Bytes()[:6]) != "longer" || len(h.Bytes()) < 22 {
		t.Errorf("the buffer is %q", h.Bytes())
	}
	h.Release()
}

func TestZeroHandlesOwnNothing(t *testing.T) {
	var h pools.Buffer
	if h.Held() {
		t.Error("the zero handle owns a buffer")
	}
	h.Release()
	moved := h.Move()
	if moved.Held() {
		t.Error("the zero handle has moved a buffer")
	}
}

func BenchmarkBuffer(b *testing.B) {
	buffers := pools.NewBuffers("buffers", 4<<10)
	b.ReportAllocs()
	for b.Loop() {
		h := buffers.Get()
		h.Bytes()[0]++
		h.Release()
	}
}
