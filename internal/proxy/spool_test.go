package proxy

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/k8singress/k8singress/internal/ir"
)

// withoutRoom lets the files of all others have all of the room.
func withoutRoom(t *testing.T) {
	t.Helper()
	before := spooled.Load()
	spooled.Store(mostSpooled - 10<<10)
	t.Cleanup(func() {
		if n := spooled.Add(-(mostSpooled - 10<<10)); n != before {
			t.Errorf("%d bytes of files are left over", n)
		}
	})
}

// TestALongBodyWithoutRoom holds that a client gets no error because others fill the disk: the body is sent on as it comes in.
func TestALongBodyWithoutRoom(t *testing.T) {
	withoutRoom(t)
	want := bytes.Repeat([]byte("0123456789abcdef"), 20<<10)
	r := httptest.NewRequest(http.MethodPut, "/", io.MultiReader(bytes.NewReader(want)))
	x := NewExchange(&Settings{Proxy: ir.Proxy{Forwarding: ir.Forwarding{MaxBody: ir.NoLimit}}}, nil)
	defer x.Close()
	if err := x.ReadBody(r); err != nil || x.body != nil {
		t.Fatalf("error %v, and the body is kept: %t", err, x.body != nil)
	}
	if got, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d go on, error %v", len(got), len(want), err)
	}
}

// TestALongAnswerWithoutRoom holds that no answer is cut off then: the endpoint waits.
func TestALongAnswerWithoutRoom(t *testing.T) {
	withoutRoom(t)
	want := bytes.Repeat([]byte("0123456789abcdef"), 200<<10)
	e := newElastic(bytes.NewReader(want))
	got, err := io.ReadAll(e)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, error %v", len(got), len(want), err)
	}
	e.Close()
}

// TestRoomIsGivenBack holds it for what found room.
func TestRoomIsGivenBack(t *testing.T) {
	before := spooled.Load()
	r := httptest.NewRequest(http.MethodPut, "/", io.MultiReader(bytes.NewReader(make([]byte, 1<<20))))
	x := NewExchange(&Settings{Proxy: ir.Proxy{Forwarding: ir.Forwarding{MaxBody: ir.NoLimit}}}, nil)
	if err := x.ReadBody(r); err != nil || x.body == nil || spooled.Load() == before {
		t.Fatalf("error %v, and %d bytes stand in files", err, spooled.Load()-before)
	}
	if x.Close(); spooled.Load() != before {
		t.Errorf("%d bytes of files are left over", spooled.Load()-before)
	}
}
