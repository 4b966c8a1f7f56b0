package front

import (
	"errors"
	"io"
	"net"
	"testing"
)

// TestStageAfterTheEnd checks that a connection that is passed to listener wrappers while or after their listener ends
// is closed and no longer counted, unless a wrapper has got it before.
func TestStageAfterTheEnd(t *testing.T) {
	k := newConnSet(&Group{front: process})
	used := process.Clients().Used
	w := &wrapping{conns: k, held: map[*clientConn]bool{}}
	for i := range 1000 {
		s := &stage{of: w, queue: make(chan net.Conn), done: make(chan struct{})}
		client, n := k.countedConn(t)
		w.transit.Add(1)
		if i%2 == 0 {
			_ = s.Close()
		}
		pushed := make(chan struct{})
		go func() {
			w.push(s, n, &inner{Conn: n, client: n, stage: s})
			close(pushed)
		}()
		_ = s.Close()
		if got, err := s.Accept(); got != nil || !errors.Is(err, net.ErrClosed) {
			t.Fatalf("Accept returns %v, %v", got, err)
		}
		<-pushed
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatalf("the connection does not end: %v", err)
		}
	}
	conns, pending, now := k.conns.Load(), k.pending.Load(), process.Clients().Used
	if conns != 0 || pending != 0 || w.transit.Load() != 0 || len(w.held) != 0 || now != used {
		t.Errorf("%d connections are counted, %d wait, %d are in transit, %d are held, and the limit counts %d, not %d",
			conns, pending, w.transit.Load(), len(w.held), now, used)
	}
}
