package proxy

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// withLimit sets the limit of a budget during the test, and checks that the test gives everything back.
func withLimit(t *testing.T, b *budget.Budget, limit int64) {
	t.Helper()
	used, before := b.Used(), b.Limit()
	b.SetLimit(limit)
	t.Cleanup(func() {
		if b.SetLimit(before); b.Used() != used {
			t.Errorf("%d units are left over", b.Used()-used)
		}
	})
}

// withoutRoom exhausts a budget during the test.
func withoutRoom(t *testing.T, b *budget.Budget) {
	t.Helper()
	withLimit(t, b, 1)
}

// bodyOf returns a request whose body has yet to be read.
func bodyOf(content []byte) *request {
	r := &message.Request{Method: http.MethodPut, Body: io.MultiReader(bytes.NewReader(content)), Length: -1}
	return &request{
		Exchange: &exchange.Exchange{Request: r, Backend: balancer.New("shop/web/80")},
		settings: &Settings{Proxy: ir.Proxy{Forwarding: ir.Forwarding{MaxBody: ir.NoLimit}}},
	}
}

// TestLongBodyWithoutRoom checks that a client gets no error if others fill the disk: the body is sent while it
// arrives.
func TestLongBodyWithoutRoom(t *testing.T) {
	withoutRoom(t, fileBytes)
	want := bytes.Repeat([]byte("0123456789abcdef"), 80<<10)
	r := bodyOf(want)
	err := r.readBody()
	defer r.body.close()
	if _, kept := r.body.wholeInMemory(); err != nil || kept || r.body.rest == nil {
		t.Fatalf("error %v, and the body is kept", err)
	}
	if got, err := io.ReadAll(r.body.reader()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d go on, error %v", len(got), len(want), err)
	}
	if again, _ := r.body.canResend(); again {
		t.Error("it can be sent twice")
	}
}

// TestLongResponseWithoutRoom checks that a response is not cut off if there is no room in files. The endpoint has to
// wait.
func TestLongResponseWithoutRoom(t *testing.T) {
	withoutRoom(t, fileBytes)
	want := bytes.Repeat([]byte("0123456789abcdef"), 200<<10)
	e := newResponseBuffer("shop", bytes.NewReader(want))
	got, err := io.ReadAll(e)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, error %v", len(got), len(want), err)
	}
	e.close(func() {})
}

// TestRoomIsGivenBack checks that the bytes in files are given back.
func TestRoomIsGivenBack(t *testing.T) {
	withLimit(t, fileBytes, 8<<20)
	r := bodyOf(make([]byte, 2<<20))
	if err := r.readBody(); err != nil || r.body.rest != nil || r.body.length != 2<<20 || fileBytes.Used() == 0 {
		t.Fatalf("error %v, and %d bytes stand in files", err, fileBytes.Used())
	}
	r.body.close()
}

// TestWithoutRoomInMemory checks that without memory, a body of any length is complete and gives everything back. It
// goes into a file, or is sent while it arrives if there is no room for a file.
func TestWithoutRoomInMemory(t *testing.T) {
	withoutRoom(t, bodyMemory())
	want := bytes.Repeat([]byte("0123456789abcdef"), 3<<10)
	r := bodyOf(want)
	err := r.readBody()
	if got, _ := io.ReadAll(r.body.reader()); err != nil || r.body.file == nil ||
		len(r.body.buffer.Bytes()) > maxInMemory || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d in a file, error %v", len(got), len(want), err)
	}
	r.body.close()
	e := newResponseBuffer("shop", bytes.NewReader(want))
	if got, err := io.ReadAll(e); err != nil || !bytes.Equal(got, want) || e.file == nil {
		t.Errorf("%d bytes of an answer, error %v", len(got), err)
	}
	e.close(func() {})

	withoutRoom(t, fileBytes)
	r = bodyOf(bytes.Repeat(want, 10))
	err = r.readBody()
	if got, _ := io.ReadAll(r.body.reader()); err != nil || r.body.rest == nil || len(got) != 10*len(want) {
		t.Errorf("%d bytes come in, error %v", len(got), err)
	}
	r.body.close()
	e = newResponseBuffer("shop", bytes.NewReader(bytes.Repeat(want, 10)))
	if got, err := io.ReadAll(e); err != nil || len(got) != 10*len(want) {
		t.Errorf("%d bytes of an answer come in, error %v", len(got), err)
	}
	e.close(func() {})
}

// TestRoomInMemoryIsGivenBack checks that incomplete bodies take no more memory than the limit and give it back.
func TestRoomInMemoryIsGivenBack(t *testing.T) {
	withLimit(t, bodyMemory(), 2*maxInMemory)
	r := bodyOf(make([]byte, maxInMemory))
	if err := r.readBody(); err != nil || r.body.file != nil || bodyMemory().Used() != maxInMemory {
		t.Errorf("error %v, and it takes %d bytes", err, bodyMemory().Used())
	}
	r.body.close()
	e := newResponseBuffer("shop", bytes.NewReader(nil))
	if bodyMemory().Used() != maxResponseMemory {
		t.Errorf("an answer takes %d bytes", bodyMemory().Used())
	}
	e.close(func() {})
}

// TestBodiesInMemory checks that a body of any length is read exactly to its end, and that all endpoints get the same
// body.
func TestBodiesInMemory(t *testing.T) {
	for _, size := range []int{
		1, 4095, 4096, 4097, maxInMemory - 1, maxInMemory, maxInMemory + 1, maxInMemory + 2, maxWholeInMemory - 1,
		maxWholeInMemory,
		maxWholeInMemory + 1, 2 * maxWholeInMemory,
	} {
		want := bytes.Repeat([]byte("x"), size)
		r := bodyOf(want)
		if err := r.readBody(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, err := io.ReadAll(r.body.reader()); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes of %d, error %v", len(got), size, err)
			}
		}
		if memory, ok := r.body.wholeInMemory(); ok != (size <= maxWholeInMemory) || ok && len(memory) != size {
			t.Errorf("of %d bytes %d stand in memory, all: %v", size, len(memory), ok)
		}
		r.body.close()
	}
}

// TestLongBodiesInMemory checks that long bodies use at most half of the memory, and no memory if they do not fit as a
// whole.
func TestLongBodiesInMemory(t *testing.T) {
	withLimit(t, bodyMemory(), 2*maxWholeInMemory)
	takes := func(length int64) int64 {
		r := bodyOf(make([]byte, maxWholeInMemory))
		if r.Length = length; r.readBody() != nil && length <= maxWholeInMemory {
			t.Errorf("a body of %d bytes is not read", length)
		}
		defer r.body.close()
		return bodyMemory().Used()
	}
	for length, want := range map[int64]int64{-1: maxWholeInMemory, maxWholeInMemory: maxWholeInMemory,
		maxWholeInMemory + 1: maxInMemory} {
		if got := takes(length); got != want {
			t.Errorf("one whose length is %d takes %d bytes, want %d", length, got, want)
		}
	}
	withLimit(t, bodyMemory(), maxWholeInMemory*3/2)
	if got := takes(maxWholeInMemory); got != maxInMemory {
		t.Errorf("without room to spare it takes %d bytes", got)
	}
}

// TestResponseTimeStartsAfterTheBody checks that the response time of an endpoint starts when the client has sent the
// last part of the body.
func TestResponseTimeStartsAfterTheBody(t *testing.T) {
	r := bodyOf([]byte("body"))
	r.settings.StreamRequest = true
	before := time.Now()
	if err := r.readBody(); err != nil || !r.body.sentAt().IsZero() {
		t.Fatalf("error %v, and it was asked at %v", err, r.body.sentAt())
	}
	if _, err := io.ReadAll(r.body.reader()); err != nil || r.body.sentAt().Before(before) {
		t.Errorf("error %v, and it was asked at %v", err, r.body.sentAt())
	}
	r = bodyOf([]byte("body"))
	if err := r.readBody(); err != nil || !r.body.sentAt().IsZero() {
		t.Errorf("error %v; a body that is there was asked at %v", err, r.body.sentAt())
	}
}
