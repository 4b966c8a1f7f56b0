package featuretests

import (
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestConnectionsKeepLittle sends as much as possible without a complete request, and keeps the connections open. It
// checks that the server's memory for each connection is limited, since there may be thousands of connections. HTTP/1.1
// clients send the start of a head, HTTP/2 clients a frame of an unknown type, which has no flow control, and HTTP/3
// clients a stream that the server does not read.
func TestConnectionsKeepLittle(t *testing.T) {
	s := besiege(t)
	const clients, each = 10, 400 << 10
	s.byEachVersion(t, func(t *testing.T, in *ingress) {
		fixture.Eventually(t, "what others took is given back", func() error { return heldNow().beyond(s.before) })
		before := heldNow()
		for range clients {
			in.fills(t)
		}
		kept := (int64(heldNow().bytes) - int64(before.bytes)) / clients
		if kept > each {
			t.Errorf("each of %d connections keeps %d KiB", clients, kept>>10)
		}
	})
}

// fills opens a connection, and sends as much as the server accepts before there is a request.
func (in *ingress) fills(t *testing.T) {
	t.Helper()
	switch in.version {
	case plain1, secure1:
		in.begins("GET / HTTP/1.1\r\nHost: a.example\r\nX-A: " + strings.Repeat("x", 31<<10))
	case plain2, secure2:
		in.fills2(t)
	case secure3:
		in.fills3(t)
	}
}

func (in *ingress) fills2(t *testing.T) {
	t.Helper()
	a := in.attacker2(true)
	a.SetMaxReadFrameSize(1 << 20)
	err := a.WriteRawFrame(frameUnknown, 0, 0, make([]byte, 1<<20))
	err = errors.Join(err, a.WritePing(false, [8]byte{}), a.out.Flush())
	// The server responds to the PING, or rejects the frame with a GOAWAY.
	for from, answered := http2.NewFramer(nil, a.conn), false; err == nil && !answered; {
		var frame http2.Frame
		if frame, err = from.ReadFrame(); err == nil {
			answered = frame.Header().Type == http2.FramePing || frame.Header().Type == http2.FrameGoAway
		}
	}
	if isTimeout(err) {
		t.Fatal(err)
	}
}

// aWhile is the time after which a client assumes that the server accepts no more bytes. On a busy machine, the test
// measures less.
const aWhile = 100 * time.Millisecond

func (in *ingress) fills3(t *testing.T) {
	t.Helper()
	conn, _ := in.dial3(nil)
	unread, err := conn.OpenUniStreamSync(t.Context())
	if err == nil {
		// The QPACK encoder has nothing to send to a server without a table.
		_, err = unread.Write([]byte{streamEncoder})
	}
	if err != nil {
		t.Fatal(err)
	}
	piece := make([]byte, 16<<10)
	for sent := 0; err == nil && sent < 8<<20; sent += len(piece) {
		_ = unread.SetWriteDeadline(time.Now().Add(aWhile)) // This returns no error.
		_, err = unread.Write(piece)
	}
}
