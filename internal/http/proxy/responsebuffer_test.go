package proxy

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestResponseBufferTakesAllBeforeAnythingIsRead checks that the source is read to its end while the client reads
// nothing.
func TestResponseBufferTakesAllBeforeAnythingIsRead(t *testing.T) {
	want := make([]byte, 3_000_000)
	for i := range want {
		want[i] = byte(rand.Uint32())
	}
	ended := make(chan struct{})
	e := newResponseBuffer("shop", io.MultiReader(bytes.NewReader(want), ending{ended}))
	defer e.close(func() {})
	fixture.Receive(t, "the end of the answer", ended)
	got, err := io.ReadAll(e)
	if !errors.Is(err, errEnd) || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, error %v", len(got), len(want), err)
	}
}

var errEnd = errors.New("the end")

// ending is the end of a source. It signals that the end was reached.
type ending struct{ ended chan struct{} }

func (e ending) Read([]byte) (int, error) {
	close(e.ended)
	return 0, errEnd
}

func TestResponseBufferPassesPiecesOn(t *testing.T) {
	source, writer := io.Pipe()
	e := newResponseBuffer("shop", source)
	defer e.close(func() {})
	buffer := make([]byte, 10)
	for _, piece := range []string{"one", "two"} {
		if _, err := io.WriteString(writer, piece); err != nil {
			t.Fatal(err)
		}
		if n, err := e.Read(buffer); err != nil || string(buffer[:n]) != piece {
			t.Errorf("%q, %v", buffer[:n], err)
		}
	}
	writer.Close()
	if _, err := e.Read(buffer); !errors.Is(err, io.EOF) {
		t.Errorf("the end is %v", err)
	}
}

// TestResponseBufferStops checks that the source is no longer read after close was called.
func TestResponseBufferStops(t *testing.T) {
	source, writer := io.Pipe()
	go func() {
		for {
			if _, err := writer.Write(make([]byte, 1<<10)); err != nil {
				return
			}
		}
	}()
	e := newResponseBuffer("shop", source)
	if _, err := e.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	e.close(func() { source.Close() })
	if e.err == nil {
		t.Error("it is still read")
	}
}
