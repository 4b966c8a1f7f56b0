package l4app

import (
	"io"
	"net"
	"os"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// descriptors returns the number of open file descriptors.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestNothingIsLeft checks that connections leave no file descriptors. goleak checks that they leave no goroutines.
func TestNothingIsLeft(t *testing.T) {
	w := newWorld(t)
	plain, through := route(ir.TCP, freePort(t), "a"), route(ir.TCP, freePort(t), "b")
	through.AcceptProxy, through.SendProxy = true, ir.ProxyV2
	w.set(plain, named(t, "a"))
	w.set(through, named(t, ""))
	run := func(n int) {
		for i := range n {
			conn := dial(t, plain)
			expect(t, conn, "a")
			if i%2 == 0 {
				_ = conn.(*net.TCPConn).SetLinger(0)
			}
			conn.Close()
			conn = dial(t, through)
			_, _ = io.WriteString(conn, []string{"PROXY UNKNOWN\r\nx", "nothing"}[i%2])
			conn.Close()
		}
		await(t, "the end of all", func() bool { return w.active(plain) == 0 && w.active(through) == 0 })
	}
	run(50)
	before := descriptors(t)
	run(1000)
	// The number of shared pipes, and of the backends' own descriptors, may differ a little.
	await(t, "the end of the file descriptors", func() bool { return descriptors(t) <= before+2*idlePipes })
}
