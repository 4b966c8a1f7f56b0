package httpserver

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/model/pools"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// large is a pool of buffers for copying bodies.
var large = pools.NewBuffers("httpserver: 32 KiB", 32<<10)

// minSpliced is the minimum size in bytes of a body that is copied by the kernel with the system call splice. For
// shorter bodies, the setup costs more than it saves.
const minSpliced = 64 << 10

// splice makes the kernel copy a response body from one plaintext TCP connection to another. done is false if this is
// not possible; nothing was copied then.
func (w *writer) splice(source io.Reader) (n int64, done bool, err error) {
	limited, ok := source.(*io.LimitedReader)
	if w.c.tcp == nil || w.chunked || !ok || limited.N < minSpliced {
		return 0, false, nil
	}
	if _, ok := limited.R.(*net.TCPConn); !ok {
		// Do not compare limited.N with w.left here: other sources may end before their limit. For example, Caddy
		// copies long bodies in parts of at most 64 KiB.
		return 0, false, nil
	}
	if w.left >= 0 && limited.N > w.left {
		return 0, true, errTooMuch
	}
	if err := w.Flush(); err != nil {
		return 0, true, err
	}
	stop := w.c.keepWriting()
	n, err = w.c.tcp.ReadFrom(limited)
	stop()
	if w.left >= 0 {
		w.left -= n
	}
	// The error may come from source, so do not store it in w.err, which is for the client connection. An error of the
	// client connection makes the next write fail too.
	return n, true, err
}

// keepWriting starts a timer that extends the write deadline while the kernel copies a body, as long as the client
// acknowledges new bytes within the time limit Limits.Send. The caller must call stop when the copy has ended.
func (c *Conn) keepWriting() (stop func()) {
	limit := c.limits.Send
	if limit <= 0 {
		return func() {}
	}
	raw := c.raw
	before := acknowledged(raw)
	c.writes.fix(time.Since(processStart) + 2*limit)
	var mu sync.Mutex
	over := false
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = panics.AfterFunc("httpserver/write", limit, func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		if now := acknowledged(raw); now == 0 || now != before {
			before = now
			c.writes.fix(time.Since(processStart) + 2*limit)
			timer.Reset(limit)
			return
		}
		_ = c.nc.SetWriteDeadline(longAgo)
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
		c.writes.invalidate()
	}
}
