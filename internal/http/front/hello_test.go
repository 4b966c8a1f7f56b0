package front_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/quic-go/quic-go"

	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/process/caddyinternals"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func init() {
	caddy.RegisterModule(new(asking))
	caddy.RegisterModule(new(asker))
}

// lookups counts how often the virtual host of a handshake is looked up, and asked how often it is used.
var lookups, asked atomic.Int32

// ask looks up the host of a handshake in the same way as each function that is called during a handshake.
func ask(conn net.Conn, server string) {
	asked.Add(1)
	host := front.LookUp(conn, server, func(uint16, string) *string {
		lookups.Add(1)
		return &server
	})
	if *host != server {
		panic("the host is " + *host + " instead of " + server)
	}
}

// asking is a matcher for TLS handshakes that looks up the host, and matches no handshake.
type asking struct{}

func (*asking) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "tls.handshake_match.asking", New: func() caddy.Module { return new(asking) }}
}

func (*asking) Match(hello *tls.ClientHelloInfo) bool {
	ask(hello.Conn, hello.ServerName)
	return false
}

// asker is a listener wrapper whose functions for handshakes look up the host.
type asker struct{ binding *front.Binding }

func (*asker) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.listeners.asker", New: func() caddy.Module { return new(asker) }}
}

func (a *asker) Provision(ctx caddy.Context) error {
	a.binding = &front.Binding{
		Context: ctx, Server: ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server), Admit: admit,
		Clients: clients,
		Divert: func(net.Addr, uint16) front.Divert {
			return func(conn net.Conn, _ time.Time) (net.Conn, error) {
				ask(conn, "h")
				return wrapped{conn}, nil
			}
		},
		Handshake: func(hello *tls.ClientHelloInfo, config *tls.Config) *tls.Config {
			ask(hello.Conn, hello.ServerName)
			return config
		},
	}
	front.Process().Prepare(a.binding)
	return nil
}

// wrapped is a connection that Divert returns.
type wrapped struct{ net.Conn }

func (c wrapped) NetConn() net.Conn { return c.Conn }

func (a *asker) Cleanup() error {
	a.binding.Forget()
	return nil
}

func (a *asker) WrapListener(l net.Listener) net.Listener {
	caddyinternals.WrapGetCertificate(a.binding.Server,
		func(next caddyinternals.GetCertificate) caddyinternals.GetCertificate {
			return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
				ask(hello.Conn, hello.ServerName)
				return next(hello)
			}
		})
	return a.binding.Wrap(l)
}

// TestLookups checks how often the virtual host is looked up for one ClientHello, if a server has three TLS connection
// policies: once with TCP. With QUIC, it is looked up once for the configuration, and once for the certificate.
func TestLookups(t *testing.T) {
	address := fixture.Address(t)
	s := frontedWithTLS(address)
	s.more["listener_wrappers"] = []any{map[string]any{"wrapper": "asker"}, map[string]any{"wrapper": "tls"}}
	never := map[string]any{"match": map[string]any{"asking": map[string]any{}}}
	s.more["tls_connection_policies"] = []any{never, never, map[string]any{"fallback_sni": "h"}}
	start(t, nil)
	if err := load(map[string]server{"two": s}, keys(t)); err != nil {
		t.Fatal(err)
	}
	expect := func(wantLookups, wantAsked int32) {
		t.Helper()
		if l, a := lookups.Swap(0), asked.Swap(0); l != wantLookups || a != wantAsked {
			t.Errorf("the host is looked up %d times, want %d, and used %d times, want %d", l, wantLookups, a,
				wantAsked)
		}
	}
	talk(t, tls.Client(dial(t, "tcp", address).Conn,
		&tls.Config{ServerName: "h", InsecureSkipVerify: true})).expectResponse(t, "two")
	expect(1, 5)
	talk(t, tls.Client(dial(t, "tcp", address).Conn,
		&tls.Config{ServerName: "other.h", InsecureSkipVerify: true})).expectResponse(t, "two")
	expect(2, 5) // The name that Divert uses is not the name that the client requests.
	ctx, cancel := context.WithTimeout(t.Context(), fixture.Patience)
	defer cancel()
	conn, err := quic.DialAddr(ctx, address,
		&tls.Config{ServerName: "h", InsecureSkipVerify: true, NextProtos: []string{"h3"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseWithError(0, "") }()
	expect(2, 4)
}
