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

// minSpliced is the minimum size in bytes of a body that the kernel copies. For shorter bodies, the pipe between the
// sockets costs more than it saves.
const minSpliced = 64 << 10

// splice lets the kernel copy a body from one plaintext TCP connection to another. If this is not possible, done is
// false and nothing was copied.
func (w *writer) splice(source io.Reader) (n int64, done bool, err error) {
	limited, ok := source.(*io.LimitedReader)
	switch {
	case w.c.tcp == nil || w.chunked || !ok || limited.N < minSpliced:
		return 0, false, nil
	case w.left >= 0 && limited.N > w.left:
		return 0, true, errTooMuch
	}
	if _, ok := limited.R.(*net.TCPConn); !ok {
		return 0, false, nil
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
	// The error may come from source, so it is not stored in w.err. If it comes from the client connection, the next
	// write fails too.
	return n, true, err
}

// keepWriting extends the write deadline while the kernel writes, as long as the client acknowledges new bytes within
// WriteTimeout. The caller must call stop after the write.
func (c *conn) keepWriting() (stop func()) {
	limit := c.options.WriteTimeout
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
