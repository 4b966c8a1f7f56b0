package front

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/process/connlimit"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// countedConn returns both ends of a connection that k and the connection limiter count. The client's end has a
// deadline.
func (k *connSet) countedConn(t *testing.T) (client net.Conn, n *clientConn) {
	t.Helper()
	client, conn := net.Pipe()
	if err := client.SetDeadline(time.Now().Add(fixture.Patience)); err != nil {
		t.Fatal(err)
	}
	n = &clientConn{Conn: conn}
	n.place = process.clients.Enter(connlimit.Client{}, n)
	k.expect()
	return client, n
}

// TestPushAfterTheEnd checks that a server that is shut down closes the connections that it gets late, and those that
// wait for it. A connection that stayed in its channel would keep its place, and its connSet would never end.
func TestPushAfterTheEnd(t *testing.T) {
	k := newConnSet(&Group{front: process})
	used := process.Clients().Used
	for i := range 64 {
		all := &servers{}
		s := &server{connSet: k, of: all, conns: make(chan net.Conn, maxHandedOver), done: make(chan struct{})}
		k.latest = all
		client, n := k.countedConn(t)
		all.conns++
		if i%2 == 0 {
			s.push(n)
		}
		_ = s.Close()
		if i%2 == 0 {
			s.refuseWaiting()
		} else {
			s.push(n)
		}
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatalf("the connection does not end: %v", err)
		}
	}
	conns, pending, now := k.conns.Load(), k.pending.Load(), process.Clients().Used
	if conns != 0 || pending != 0 || now != used {
		t.Errorf("%d connections are counted, %d wait, and the limit counts %d, before %d", conns, pending, now, used)
	}
}
