package k8singress

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/front"
	"github.com/k8singress/k8singress/internal/live"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/pools"
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
	// port is as in live.Table.Passthrough.
	port uint16
	// passage is made when the first connection is looked at: a listener that passes nothing on has no metrics.
	passage func() *l4app.Passage
	log     *zap.Logger
}

// newPassing is for the connections that are accepted at one address.
func newPassing(table *live.Table, port uint16, passage func() *l4app.Passage, log *zap.Logger) *passing {
	return &passing{table, port, sync.OnceValue(passage), log}
}

// hellos are buffers for what clients say first.
var hellos = pools.NewBuffers("k8singress: hello", helloSize)

// divert reads the first words of a client, on the goroutine of the connection, so that a client that says nothing holds up
// nobody else, if there are hosts whose TLS ends elsewhere. It returns a connection on which they come again, unless the client
// wants such a host: the connection is gone then.
func (p *passing) divert(conn net.Conn, until time.Time) (net.Conn, error) {
	if !p.table.PassesAny(p.port) {
		return conn, nil
	}
	passage := p.passage()
	if err := conn.SetReadDeadline(earlier(until, time.Now().Add(helloTime))); err != nil {
		return nil, err
	}
	buffer := hellos.Get()
	name, n, err := sni.Read(conn, buffer.Bytes())
	if errors.Is(err, sni.ErrTooLong) || errors.Is(err, os.ErrDeadlineExceeded) {
		passage.Unheard()
	}
	ours := err == nil || errors.Is(err, sni.ErrTooLong) || errors.Is(err, sni.ErrNoHello)
	if err == nil {
		if to := p.table.Passthrough(p.port, name); to != nil {
			ours, err = false, p.pass(conn, to, append([]byte(nil), buffer.Bytes()[:n]...))
		}
	}
	if !ours {
		buffer.Release()
		return nil, err
	}
	return &replayed{conn, buffer.Bytes()[:n], buffer.Move()}, conn.SetReadDeadline(until)
}

// earlier is the earlier one of two times, of which the first may be none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// replayed is a connection of which something was read before its time. It comes again.
type replayed struct {
	net.Conn
	// ahead is a part of buffer. Only reads look at it, of which there is one at a time.
	ahead  []byte
	buffer pools.Buffer
}

func (c *replayed) Read(b []byte) (int, error) {
	if !c.buffer.Held() {
		return c.Conn.Read(b)
	}
	n := copy(b, c.ahead)
	if c.ahead = c.ahead[n:]; len(c.ahead) == 0 {
		c.ahead = nil
		c.buffer.Release()
	}
	return n, nil
}

// NetConn returns the connection below.
func (c *replayed) NetConn() net.Conn { return c.Conn }

// pass gives the connection to the backend.
func (p *passing) pass(conn net.Conn, to *live.Passthrough, ahead []byte) error {
	if below, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = below.NetConn()
	}
	if p, ok := conn.(proxied); ok {
		conn = p.Conn
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	// The connection ends by itself, or when Table or the end of the process has it end.
	backend := to.Backends.Next()
	passed := p.passage().Take(conn, ahead, backend)
	ended := to.Follow(passed.End)
	panics.Go("k8singress/passthrough", func() {
		defer ended()
		if err := passed.Pass(); err != nil {
			p.log.Debug("passing a connection through", zap.Stringer("client", conn.RemoteAddr()),
				zap.String("backend", backend.ID()), zap.Error(err))
		}
	})
	return front.ErrTaken
}
