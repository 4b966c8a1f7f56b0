package front_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/quic-go/quic-go"

	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestConnectionsAreActiveFromAccept checks that a closed address does not count as ended while a connection that it
// has accepted waits for a place. Otherwise the tables would forget the hosts of the address before the request.
func TestConnectionsAreActiveFromAccept(t *testing.T) {
	address := fixture.Address(t)
	waits, goes := make(chan struct{}), make(chan struct{})
	hooks.Store(&hook{admit: func(conn net.Conn) net.Conn {
		if conn.LocalAddr().String() == address {
			waits <- struct{}{}
			<-goes
		}
		return conn
	}})
	t.Cleanup(func() { hooks.Store(nil) })
	start(t, map[string]server{"one": fronted(fixture.Address(t), "one")})
	at, err := caddy.ParseNetworkAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := front.Process().Open(t.Context(), at, "one")
	if err != nil {
		t.Fatal(err)
	}
	unusedAt, err := caddy.ParseNetworkAddress(fixture.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	unused, err := front.Process().Open(t.Context(), unusedAt, "one")
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, "tcp", address)
	fixture.Receive(t, "the connection", waits)
	opened.Close()
	fixture.Eventually(t, "a closed socket", func() error {
		if conn, err := net.Dial("tcp", address); err == nil {
			return errors.Join(errors.New("it is open"), conn.Close())
		}
		return nil
	})
	unused.Close()
	fixture.Holds(t, "the address without connections has ended", unused.Ended)
	if opened.Ended() {
		t.Fatal("the address has ended before its connection")
	}
	goes <- struct{}{}
	c.expectResponse(t, "one")
	_ = c.Close()
	fixture.Holds(t, "the address has ended", opened.Ended)
}

// TestPanicsGiveBack checks that a panic at the start of a connection ends only this connection, and gives back its
// place and its count, for each way to serve it.
func TestPanicsGiveBack(t *testing.T) {
	var panics atomic.Bool
	fault := func() {
		if panics.Load() {
			panic("a fault of the controller")
		}
	}
	for name, h := range map[string]*hook{
		"admit":  {admit: func(conn net.Conn) net.Conn { fault(); return conn }},
		"limits": {limits: fault},
	} {
		t.Run(name, func(t *testing.T) {
			hooks.Store(h)
			t.Cleanup(func() { hooks.Store(nil) })
			panics.Store(true)
			givesBack(t, h.limits != nil, func() { panics.Store(false) })
		})
	}
}

// givesBack checks connections that panic until mend is called. With three, those of HTTP/3 panic, too.
func givesBack(t *testing.T, three bool, mend func()) {
	t.Helper()
	plain, secure, unix := fixture.Address(t), fixture.Address(t), filepath.Join(t.TempDir(), "socket")
	start(t, map[string]server{"one": fronted(plain, "one")})
	if err := load(map[string]server{
		"one": fronted(plain, "one"), "two": frontedWithTLS(secure), "three": fronted("unix/"+unix, "three"),
	}, keys(t)); err != nil {
		t.Fatal(err)
	}
	used := front.Process().Clients().Used
	for range 2 {
		dial(t, "tcp", plain).breaks(t)
		dial(t, "unix", unix).breaks(t)
		for _, protocol := range []string{"h2", "http/1.1"} {
			config := &tls.Config{ServerName: "h", InsecureSkipVerify: true, NextProtos: []string{protocol}}
			talk(t, tls.Client(dial(t, "tcp", secure).Conn, config)).breaks(t)
		}
		if three {
			breaksQUIC(t, secure)
		}
	}
	fixture.Eventually(t, "places that are given back", func() error {
		if now := front.Process().Clients().Used; now != used {
			return fmt.Errorf("%d connections are counted, before %d", now, used)
		}
		return nil
	})
	mend()
	dial(t, "tcp", plain).expectResponse(t, "one")
	dial(t, "unix", unix).expectResponse(t, "three")
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	fixture.Holds(t, "the end of all cohorts", func() bool { return front.Draining() == 0 })
}

// breaks waits until the connection has ended, in any way.
func (c *client) breaks(t *testing.T) {
	t.Helper()
	_, _ = io.WriteString(c.Conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	if _, err := c.ReadByte(); err == nil || isTimeout(err) {
		t.Errorf("the connection does not end: %v", err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// breaksQUIC checks that a connection of HTTP/3 ends.
func breaksQUIC(t *testing.T, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fixture.Patience)
	defer cancel()
	config := &tls.Config{ServerName: "h", InsecureSkipVerify: true, NextProtos: []string{"h3"}}
	conn, err := quic.DialAddr(ctx, address, config, nil)
	if err != nil && ctx.Err() == nil {
		// The connection has ended during the handshake.
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	fixture.Receive(t, "the end of the connection", conn.Context().Done())
}

// TestEndBodyBeforeARead checks that a read of a body that begins just after EndBody does not wait for the client.
func TestEndBodyBeforeARead(t *testing.T) {
	read := make(chan error, 1)
	hooks.Store(&hook{answer: func(w message.Writer, r *message.Request) {
		w.EndBody()
		_, err := r.Body.Read(make([]byte, 1))
		read <- err
		_ = w.Head(&message.Response{Status: http.StatusNoContent})
	}})
	t.Cleanup(func() { hooks.Store(nil) })
	address := fixture.Address(t)
	one := fronted(address, "one")
	one.more["read_idle_timeout"] = "1h"
	start(t, map[string]server{"one": one})
	c := dial(t, "tcp", address)
	if _, err := io.WriteString(c.Conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := fixture.Receive(t, "the end of the read", read); err == nil {
		t.Error("the read returns no error")
	}
}

// TestSocketsOfHTTP3AreForgotten checks that a server keeps nothing of the HTTP/3 sockets that are closed.
func TestSocketsOfHTTP3AreForgotten(t *testing.T) {
	tlsApp := keys(t)
	start(t, map[string]server{"one": fronted(fixture.Address(t), "one")})
	for range 4 {
		if err := load(map[string]server{"two": frontedWithTLS(fixture.Address(t))}, tlsApp); err != nil {
			t.Fatal(err)
		}
	}
	fixture.Eventually(t, "one socket", func() error {
		if n := front.SocketsOfHTTP3("two"); n != 1 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}
