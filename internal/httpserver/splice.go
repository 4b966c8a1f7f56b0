package httpserver

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/pools"
)

// large has buffers that bodies are copied with.
var large = pools.NewBuffers("httpserver: 32 KiB", 32<<10)

// worthSplicing is how long a body is at least that is moved by the kernel: the pipe between the sockets costs something, too.
const worthSplicing = 64 << 10

// splice moves a body from one bare TCP connection to another one inside the kernel. done says that it did.
func (w *writer) splice(source io.Reader) (n int64, done bool, err error) {
	limited, ok := source.(*io.LimitedReader)
	switch {
	case w.c.tcp == nil || w.chunked || !ok || limited.N < worthSplicing:
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
	// The error may be that of the source: that of a client shows again.
	return n, true, err
}

// keepWriting moves the write deadline while the kernel writes, as long as the client takes something: the bytes that it has
// acknowledged are looked at now and then. What it returns ends that.
func (c *conn) keepWriting() (stop func()) {
	limit := c.options.WriteTimeout
	if limit <= 0 {
		return func() {}
	}
	raw := c.raw
	before := acknowledged(raw)
	c.writes.fix(time.Since(began) + 2*limit)
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
			c.writes.fix(time.Since(began) + 2*limit)
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
		c.writes.spoil()
	}
}
