package front_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// prefixed is a connection from which a Driver has already read some bytes.
type prefixed struct {
	net.Conn
	io.Reader
}

func (p prefixed) Read(b []byte) (int, error) { return p.Reader.Read(b) }

// useDriver makes a Driver serve HTTP/1.1 until the test ends.
func useDriver(t *testing.T, d front.Driver) {
	front.Process().Drivers["http/1.1"] = d
	t.Cleanup(func() { front.Process().Drivers["http/1.1"] = handOver })
}

// handOver is the Driver for HTTP/1.1 of all other tests: net/http serves the connections.
func handOver(conn net.Conn, info *front.ConnInfo) { info.HandOver(conn) }

func init() { front.Process().Drivers["http/1.1"] = handOver }

// TestDrive checks that the Driver gets HTTP/1.1 connections, can hand them over to net/http, and is called when
// they have to end.
func TestDrive(t *testing.T) {
	left := make(chan bool, 10)
	useDriver(t, func(conn net.Conn, info *front.ConnInfo) {
		first := make([]byte, 1)
		if _, err := io.ReadFull(conn, first); err != nil {
			t.Error(err)
		}
		if first[0] == 'G' {
			info.HandOver(prefixed{conn, io.MultiReader(bytes.NewReader(first), conn)})
			return
		}
		defer conn.Close()
		done := make(chan struct{})
		info.OnLeave(func() {
			left <- info.Leaving()
			close(done)
		})
		_, secure := conn.(*tls.Conn)
		fmt.Fprintf(conn, "%s %v %v\n", info.Binding().Server.Name(), secure, info.Limits().Head)
		<-done
	})

	plain, secure := fixture.Address(t), fixture.Address(t)
	two := frontedWithTLS(secure)
	two.more["read_header_timeout"] = "7s"
	start(t, map[string]server{"one": fronted(plain, "one")})
	if err := load(map[string]server{"one": fronted(plain, "one"), "two": two}, keys(t)); err != nil {
		t.Fatal(err)
	}
	over := func(protocols ...string) *client {
		return talk(t, tls.Client(dial(t, "tcp", secure).Conn,
			&tls.Config{ServerName: "h", InsecureSkipVerify: true, NextProtos: protocols}))
	}
	dial(t, "tcp", plain).expectResponse(t, "one")
	over().expectResponse(t, "two")
	over("http/1.1").expectResponse(t, "two")
	plainly, secretly := dial(t, "tcp", plain), over("http/1.1")
	for c, want := range map[*client]string{plainly: "one false 1m0s\n", secretly: "two true 7s\n"} {
		if _, err := io.WriteString(c.Conn, "x"); err != nil {
			t.Fatal(err)
		}
		if got, err := c.ReadString('\n'); err != nil || got != want {
			t.Errorf("the driver says %q, %v, want %q", got, err, want)
		}
	}
	// HTTP/2 connections do not reach the Driver. With HTTP/2, the server sends first.
	c := over("h2", "http/1.1")
	if _, err := c.ReadByte(); err != nil || c.Conn.(*tls.Conn).ConnectionState().NegotiatedProtocol != "h2" {
		t.Error("there is no HTTP/2", err)
	}
	// A certificate authority that validates a challenge only wants the handshake.
	before := panics.Counts()
	challenge := over("acme-tls/1", "other")
	challenge.ends(t)
	if got := challenge.Conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != "acme-tls/1" {
		t.Errorf("the protocol is %q", got)
	}
	if now := panics.Counts(); !maps.Equal(now, before) {
		t.Errorf("panics: %v, before %v", now, before)
	}
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !fixture.Receive(t, "the end", left) {
			t.Error("it leaves without saying so")
		}
	}
	plainly.ends(t)
	secretly.ends(t)
}
