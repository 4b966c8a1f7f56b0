package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/process/netconn"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// isWebSocket reports whether the header fields of a 101 response select the WebSocket protocol.
func isWebSocket(answer message.Fields) bool {
	return strings.EqualFold(answer.Get(message.Upgrade), "websocket")
}

// switched sends the 101 response and then copies data in both directions until one side closes or both are silent for
// too long.
func (r *request) switched(c *conn) error {
	// The connection cannot carry further requests.
	c.head.KeepAlive = false
	r.ResponseStarted(time.Time{})
	if err := r.writeHead(&c.response); err != nil {
		return err
	}
	if !c.finish() {
		return r.abort(fmt.Errorf("%w: %w", errClientWrite, r.gone()))
	}
	client, err := r.Writer.Switch()
	if err != nil {
		return r.abort(clientWriteError(err))
	}
	defer client.Close()
	conn, ok := client.(net.Conn)
	if !ok {
		return r.abort(fmt.Errorf("%w: the network connection does not support deadlines", errClientWrite))
	}
	if ctx := r.Context(); ctx.Err() == nil {
		// Close the client's connection when the context of the request ends. Skip this if the context has already
		// ended: the server may have canceled it because it no longer owns a hijacked connection.
		defer panics.AfterContext(ctx, "proxy/websocket", func() { _ = conn.Close() })()
	}
	t := &tunnel{limit: c.in.limit, tick: max(c.in.limit/renewParts, time.Millisecond), last: time.Now()}
	if in := c.buffered(); len(in) > 0 {
		c.at = c.end
		if _, err := conn.Write(in); err != nil {
			return nil //nolint:nilerr // A client that leaves ends its WebSocket in this way.
		}
		r.Relayed += int64(len(in))
	}
	end := func() {
		_ = conn.Close()
		_ = c.socket.Close()
	}
	var both panics.Group
	var in, out int64
	both.Go("proxy/websocket", func() { in = t.copy(c.socket, conn) }, end)
	both.Go("proxy/websocket", func() { out = t.copy(conn, c.socket) }, end)
	both.Wait()
	r.Received, r.Relayed = r.Received+in, r.Relayed+out
	return nil
}

// tunnel holds the state that the two directions of a WebSocket connection share.
type tunnel struct {
	// limit is the maximum time without data in either direction. tick is the interval at which each direction checks
	// this limit.
	limit, tick time.Duration

	mu sync.Mutex
	// last is the time of the last data in either direction.
	last time.Time
}

// record must be called after each attempt to copy data. The parameter anything is true if data was copied; record then
// sets t.last to the current time. It reports whether no data has been copied in either direction for at least t.limit.
func (t *tunnel) record(anything bool) (tooLong bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if anything {
		t.last = now
	}
	return now.Sub(t.last) >= t.limit
}

// copy copies the data of one direction. At the end of the source, it closes only this direction. After any other
// error, it closes both connections. It returns the number of bytes that it has copied.
func (t *tunnel) copy(to, from net.Conn) (copied int64) {
	buffer := small.Get()
	copied = t.copyWith(buffer.Bytes(), to, from)
	buffer.Release()
	return copied
}

func (t *tunnel) copyWith(buffer []byte, to, from net.Conn) (copied int64) {
	for {
		now := time.Now()
		_ = from.SetReadDeadline(now.Add(t.tick))
		_ = to.SetWriteDeadline(now.Add(t.limit + t.tick))
		n, err := move(to, from, buffer)
		copied += n
		silent := t.record(n > 0)
		switch {
		case err == nil && !errors.Is(netconn.CloseWrite(to), errors.ErrUnsupported):
			return copied
		case !isTimeout(err) || silent || time.Since(now) >= t.limit+t.tick:
			// Close both connections after an error, if no data was copied in either direction for too long, or if the
			// data could not be written in time.
			_ = to.Close()
			_ = from.Close()
			return copied
		}
	}
}

// move copies data until the end of from or an error. If both connections are TCP without TLS, the kernel may copy the
// data.
func move(to, from net.Conn, buffer []byte) (int64, error) {
	if tcp, ok := to.(*net.TCPConn); ok {
		if _, ok := from.(*net.TCPConn); ok {
			return tcp.ReadFrom(from)
		}
	}
	return io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, buffer)
}
