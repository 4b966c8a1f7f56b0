package compress

import (
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestEncoderBytes measures the memory of an encoder of each level, and compares it with the memory that responses take
// from the budget.
func TestEncoderBytes(t *testing.T) {
	text := make([]byte, 256<<10)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range text {
		text[i] = 'a' + byte(random.IntN(20))
	}
	for level := 1; level <= 9; level++ {
		measured(t, newGzip(&ir.Coding{Level: level}), level, text)
	}
	for level := 1; level <= 11; level++ {
		measured(t, newBrotli(&ir.Coding{Level: level}), level, text)
	}
}

func measured(t *testing.T, c *coding, level int, text []byte) {
	t.Helper()
	before := fixture.Heap()
	owned := c.begin(io.Discard)
	for left := text; len(left) > 0; {
		n := min(len(left), 32<<10)
		if _, err := owned.Value().to.Write(left[:n]); err != nil {
			t.Fatal(err)
		}
		left = left[n:]
	}
	got := int64(fixture.Heap() - before)
	runtime.KeepAlive(&owned)
	if got > c.bytes+c.bytes/16 || got < c.bytes/3 {
		t.Errorf("%s of level %d takes %d KiB, and %d of the budget", c.name, level, got>>10, c.bytes>>10)
	}
}

// TestWithoutRoomForEncoders checks that a response is sent uncompressed and counted if there is no memory for an
// encoder, and that it still has a Vary field. It also checks that gzip is used if there is not enough memory for
// Brotli, and that namespaces share the memory.
func TestWithoutRoomForEncoders(t *testing.T) {
	before := encoderMemory().Limit()
	// The budget is enough for four gzip encoders, and for no Brotli encoder.
	const limit = 4100 << 10
	encoderMemory().SetLimit(limit)
	t.Cleanup(func() {
		if encoderMemory().SetLimit(before); encoderMemory().Used() != 0 {
			t.Errorf("%d bytes are left over", encoderMemory().Used())
		}
	})
	policy, text := New(&ir.Compression{Gzip: ir.Coding{On: true}, Brotli: ir.Coding{On: true}}),
		strings.Repeat("text ", 1000)
	begin := func(namespace string) (*Writer, *client) {
		c := &client{}
		w := policy.Writer(c, requestAccepting("br, gzip"), func() string { return namespace })
		t.Cleanup(w.Close)
		head := &message.Response{
			Status: 200, Length: int64(len(text)), Fields: message.Fields{message.ContentType.Field("text/html")},
		}
		if err := w.Head(head); err != nil {
			t.Fatal(err)
		}
		if c.field("Vary") != "Accept-Encoding" {
			t.Errorf("the head is %+v", c.head)
		}
		return w, c
	}
	refused, compressed := uncompressed.Load(), 0
	first, c := begin("shop")
	for ; c.field("Content-Encoding") == "gzip" && compressed < 10; compressed++ {
		_, c = begin("shop")
	}
	if compressed != 4 || c.field("Content-Encoding") != "" || uncompressed.Load() != refused+1 {
		t.Fatalf("%d responses are compressed, and %d are counted", compressed, uncompressed.Load()-refused)
	}
	if c.head.Length != int64(len(text)) {
		t.Errorf("a response without an encoder has the length %d", c.head.Length)
	}
	first.Close()
	if _, c := begin("other"); c.field("Content-Encoding") != "gzip" {
		t.Error("the room that a response gives back is not used")
	}
	encoderMemory().SetLimit(8 * limit)
	for {
		if _, c := begin("shop"); c.field("Content-Encoding") == "" {
			break
		}
	}
	if _, c := begin("third"); c.field("Content-Encoding") == "" {
		t.Error("one namespace has all of the room")
	}
}
