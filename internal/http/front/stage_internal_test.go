package front

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/k8singress/k8singress/internal/process/connlimit"
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

// TestProxyHeaderOfAWrapper checks that a client that has sent nothing except the PROXY protocol header, which a
// listener wrapper has read, counts as idle, so that its connection can be closed to make room for another.
func TestProxyHeaderOfAWrapper(t *testing.T) {
	k := newConnSet(&Group{front: process})
	client, n := k.countedConn(t)
	header := []byte("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n")
	go func() { _, _ = client.Write(header) }()
	if _, err := io.ReadFull(n, make([]byte, len(header))); err != nil {
		t.Fatal(err)
	}
	if state, _ := n.State(); state != connlimit.Busy {
		t.Errorf("while the wrapper has the connection, its state is %v", state)
	}
	if !n.leaveWrapper(connlimit.Client{}) {
		t.Error("the limiter rejects the client")
	}
	if state, _ := n.State(); state != connlimit.Idle {
		t.Errorf("after the header, the state is %v", state)
	}
	n.End()
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection does not end: %v", err)
	}
	k.unexpect()
	n.place.Leave()
}
