package k8singress

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/live"
	"github.com/k8singress/k8singress/internal/sni"
	"github.com/k8singress/k8singress/l4app"
)

const (
	// helloTime is how long a client may take to say which server it wants, while there is a host whose TLS ends elsewhere.
	helloTime = 5 * time.Second
	// helloSize is how much is read to find it out. Where that is not enough, TLS ends here.
	helloSize = 16 << 10
)

// passing knows which connections are the business of a backend.
type passing struct {
	table *live.Table
	// passage is made when the first connection is looked at: a listener that passes nothing on has no metrics.
	passage func() *l4app.Passage
	log     *zap.Logger
}

// newPassing is for the connections that are accepted at an address.
func newPassing(table *live.Table, ports *l4app.Ports, at net.Addr, log *zap.Logger) *passing {
	return &passing{table, sync.OnceValue(func() *l4app.Passage { return ports.Passage(at, table.StreamPolicy, log) }), log}
}

// errPassed is what the server is told that has accepted a connection which is passed through. It ends up in the debug log.
var errPassed = errors.New("the connection is passed through to the backend of its host")

// hellos are buffers for what clients say first.
var hellos = sync.Pool{New: func() any {
	buffer := make([]byte, helloSize)
	return &buffer
}}

// look reads the first words of a client, on the goroutine of the connection, so that a client that says nothing holds up
// nobody else. It returns what it has read, unless the TLS of the host that the client wants ends elsewhere: the connection is
// gone then, and the error is errPassed.
func (c *handshaking) look() (err error) {
	passage := c.passing.passage()
	if err := c.Conn.SetReadDeadline(earlier(c.until, time.Now().Add(helloTime))); err != nil {
		return err
	}
	buffer := hellos.Get().(*[]byte)
	defer func() {
		if c.ahead == nil {
			hellos.Put(buffer)
		}
	}()
	name, n, err := sni.Read(c.Conn, *buffer)
	if errors.Is(err, sni.ErrTooLong) || errors.Is(err, os.ErrDeadlineExceeded) {
		passage.Unheard()
	}
	switch {
	case err == nil:
		if to := c.passing.table.Passthrough(name); to != nil {
			return c.pass(to, append([]byte(nil), (*buffer)[:n]...))
		}
	case !errors.Is(err, sni.ErrTooLong) && !errors.Is(err, sni.ErrNoHello):
		return err
	}
	c.ahead, c.buffer = (*buffer)[:n], buffer
	return c.Conn.SetReadDeadline(c.until)
}

// earlier is the earlier one of two times, of which the first may be none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// replay hands out what was read before its time.
func (c *handshaking) replay(b []byte) int {
	n := copy(b, c.ahead)
	if c.ahead = c.ahead[n:]; len(c.ahead) == 0 {
		hellos.Put(c.buffer)
		c.ahead, c.buffer = nil, nil
	}
	return n
}

// pass takes the connection away from the server that has accepted it. Whatever that does with it has no effect any more.
func (c *handshaking) pass(to *live.Passthrough, ahead []byte) error {
	c.passed.Store(true)
	conn := c.Conn
	if p, ok := conn.(proxied); ok {
		conn = p.Conn
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return errors.Join(err, conn.Close())
	}
	// The connection ends by itself, or when Table or the end of the process has it end.
	backend := to.Backends.Next()
	passed := c.passing.passage().Take(conn, ahead, backend)
	ended := to.Follow(passed.End)
	go func() {
		defer ended()
		if err := passed.Pass(); err != nil {
			c.passing.log.Debug("passing a connection through", zap.Stringer("client", conn.RemoteAddr()),
				zap.String("backend", backend.ID()), zap.Error(err))
		}
	}()
	return errPassed
}
