package k8singress

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/model/pools"
	"github.com/k8singress/k8singress/internal/process/netconn"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/tls/sni"
	"github.com/k8singress/k8singress/l4app"
)

const (
	// helloTime is the maximum time that a client may take to send its ClientHello. It only applies if a host has TLS
	// passthrough.
	helloTime = 5 * time.Second
	// helloSize is the maximum size, in bytes, of a ClientHello that is inspected. If the ClientHello is larger, the
	// connection is not forwarded: the controller terminates TLS.
	helloSize = 16 << 10
)

// passing forwards connections for hosts with TLS passthrough to their backends.
type passing struct {
	table *live.Table
	// port is the listen port, or live.ServerPorts for all ports of Caddy's HTTP servers.
	port uint16
	// passage returns the l4app.Passage, which forwards connections and counts them. The Passage is created for the
	// first connection that is inspected, so that listeners without TLS passthrough have no metrics for it.
	passage func() *l4app.Passage
	log     *zap.Logger
}

// newPassing creates the passthrough forwarder for connections that are accepted at one listen address.
func newPassing(table *live.Table, port uint16, passage func() *l4app.Passage, log *zap.Logger) *passing {
	return &passing{table, port, sync.OnceValue(passage), log}
}

// hellos is a pool of buffers for ClientHello messages.
var hellos = pools.NewBuffers("k8singress: hello", helloSize)

// divert reads the ClientHello of a connection, if any host has TLS passthrough. If the client requests such a host,
// divert forwards the connection to the backend and returns front.ErrTaken. Otherwise it returns a connection that
// replays the data read so far. It runs in the connection's own goroutine, so a client that sends no data does not
// delay other clients.
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
		passage.CountNoClientHello()
	}
	ours := err == nil || errors.Is(err, sni.ErrTooLong) || errors.Is(err, sni.ErrNoHello)
	if err == nil {
		if to := front.LookUp(conn, name, p.table.HostFor).Passthrough(name); to != nil {
			ours, err = false, p.pass(conn, to, append([]byte(nil), buffer.Bytes()[:n]...))
		}
	}
	if !ours {
		buffer.Release()
		return nil, err
	}
	return netconn.ReplayPooled(conn, &buffer, n), conn.SetReadDeadline(until)
}

// earlier returns the earlier of two times. If a is the zero time, it returns b.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// pass forwards the connection to a backend of the host. ahead contains the bytes that were already read from the
// connection.
func (p *passing) pass(conn net.Conn, to *live.Passthrough, ahead []byte) error {
	if below := netconn.Below(conn); below != nil {
		conn = below
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	// The forwarded connection ends when the client or the backend closes it. The routing table also ends it if the
	// host no longer uses TLS passthrough or the process exits.
	backend := to.Backends.Next()
	passed := p.passage().Take(conn, ahead, backend)
	ended := to.Register(passed.End)
	panics.Go("k8singress/passthrough", func() {
		defer ended()
		if err := passed.Pass(); err != nil {
			p.log.Debug("passing a connection through", zap.Stringer("client", conn.RemoteAddr()),
				zap.String("backend", backend.ID()), zap.Error(err))
		}
	})
	return front.ErrTaken
}
