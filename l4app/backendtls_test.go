package l4app

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/mholt/caddy-l4/layer4"
	"github.com/pires/go-proxyproto"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/trust"
)

// newIdentity returns a self-signed certificate for the name db.test.
func newIdentity(t *testing.T) *fixture.Identity {
	t.Helper()
	return fixture.Identify(t, nil, &x509.Certificate{
		Subject: pkix.Name{CommonName: "db.test"}, DNSNames: []string{"db.test"}, IsCA: true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// secretive starts a TLS endpoint that sends the requested server name, and then echoes what it receives.
func secretive(t *testing.T, i *fixture.Identity, before func(*net.TCPConn) net.Conn) string {
	return backend(t, func(conn *net.TCPConn) {
		secure := tls.Server(before(conn), &tls.Config{Certificates: []tls.Certificate{i.Pair()}})
		if secure.HandshakeContext(t.Context()) != nil {
			return
		}
		_, _ = io.WriteString(secure, secure.ConnectionState().ServerName+"\n")
		_, _ = io.Copy(secure, secure)
		_ = secure.CloseWrite()
	})
}

func asItIs(conn *net.TCPConn) net.Conn { return conn }

// trust makes the store watch the Secrets to which a route refers.
func (w *world) trust(r *ir.StreamRoute) *trust.Store {
	w.Trust.Update(&document.Delta{Ports: map[string]*document.Port{portName(r): Render(r, nil)}})
	return w.Trust
}

func verified(t *testing.T) *ir.StreamRoute {
	r := route(ir.TCP, freePort(t), "a")
	r.BackendTLS = &ir.BackendTLS{Secret: ir.Name{Namespace: "test", Name: "ca"}, Verify: true, Depth: 1,
		Name: "db.test", SendName: true}
	return r
}

func TestTLSWithEndpoints(t *testing.T) {
	w := newWorld(t)
	r, i := verified(t), newIdentity(t)
	w.trust(r).SetSecret(ir.Name{Namespace: "test", Name: "ca"}, map[string][]byte{"ca.crt": i.PEM()}, true)
	w.set(r, secretive(t, i, asItIs))
	conn := dial(t, r)
	expect(t, conn, "db.test\n")
	sent := strings.Repeat("all of it ", 100_000)
	go func() {
		_, _ = io.WriteString(conn, sent)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	expectAll(t, conn, sent)
}

// TestTLSAfterTheHeader checks that the PROXY protocol header is sent first, unencrypted.
func TestTLSAfterTheHeader(t *testing.T) {
	w := newWorld(t)
	r, i := verified(t), newIdentity(t)
	r.SendProxy = ir.ProxyV2
	w.trust(r).SetSecret(ir.Name{Namespace: "test", Name: "ca"}, map[string][]byte{"ca.crt": i.PEM()}, true)
	w.set(r, secretive(t, i, func(conn *net.TCPConn) net.Conn {
		return proxyproto.NewConn(conn, proxyproto.WithPolicy(proxyproto.REQUIRE))
	}))
	expect(t, dial(t, r), "db.test\n")
}

func TestUntrustedEndpoint(t *testing.T) {
	i, other := newIdentity(t), newIdentity(t)
	for name, test := range map[string]struct {
		change func(*ir.BackendTLS)
		secret map[string][]byte
	}{
		"of another authority": {func(*ir.BackendTLS) {}, map[string][]byte{"ca.crt": other.PEM()}},
		"of another name": {func(o *ir.BackendTLS) { o.Name = "other.test" },
			map[string][]byte{"ca.crt": i.PEM()}},
		"no Secret":    {func(*ir.BackendTLS) {}, nil},
		"no authority": {func(*ir.BackendTLS) {}, map[string][]byte{"ca.crt": []byte("none")}},
		"bad pair": {func(o *ir.BackendTLS) { o.Verify = false }, map[string][]byte{
			"ca.crt": i.PEM(), "tls.crt": []byte("none"), "tls.key": []byte("none"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := verified(t)
			w.Endpoints.Configure(r.Backends[0].Backend.ID, &ir.LoadBalancing{EjectAfter: -1})
			test.change(r.BackendTLS)
			store := w.trust(r)
			store.SetSecret(ir.Name{Namespace: "test", Name: "ca"}, test.secret, test.secret != nil)
			w.set(r, secretive(t, i, asItIs))
			conn := dial(t, r)
			send(t, conn, "secret")
			expectEnd(t, conn)
			if got := w.failed(r, noEndpoint); got != 1 {
				t.Errorf("%d are counted", got)
			}
			// The Secret is fixed without a change of the port.
			if r.BackendTLS.Name != "db.test" {
				return
			}
			store.SetSecret(ir.Name{Namespace: "test", Name: "ca"}, map[string][]byte{"ca.crt": i.PEM()}, true)
			expect(t, dial(t, r), "db.test\n")
		})
	}
}

func TestTLSWithoutASecret(t *testing.T) {
	i := newIdentity(t)
	t.Run("not verified", func(t *testing.T) {
		w := newWorld(t)
		r := route(ir.TCP, freePort(t), "a")
		r.BackendTLS = &ir.BackendTLS{Name: "any", SendName: true}
		w.trust(r)
		w.set(r, secretive(t, i, asItIs))
		line, err := bufio.NewReader(dial(t, r)).ReadString('\n')
		if err != nil || line != "any\n" {
			t.Errorf("heard %q, %v", line, err)
		}
	})
	t.Run("verified by nobody", func(t *testing.T) {
		w := newWorld(t)
		r := route(ir.TCP, freePort(t), "a")
		r.BackendTLS = &ir.BackendTLS{Verify: true, Name: "db.test"}
		w.trust(r)
		if refused := w.ports.Update(w.ctx, one(r)); len(refused) != 1 {
			t.Errorf("refused: %v", refused)
		}
	})
}

// TestSilentTLSEndpoint checks that the connect timeout includes the TLS handshake.
func TestSilentTLSEndpoint(t *testing.T) {
	w := newWorld(t)
	r, i := verified(t), newIdentity(t)
	r.Policy.ConnectTimeout = 200 * time.Millisecond
	w.trust(r).SetSecret(ir.Name{Namespace: "test", Name: "ca"}, map[string][]byte{"ca.crt": i.PEM()}, true)
	w.set(r, silent(t), secretive(t, i, asItIs))
	for range 2 {
		// On a busy machine, the other endpoint may be too slow as well, so the test retries.
		fixture.Eventually(t, "the other endpoint", func() error {
			got := make([]byte, len("db.test\n"))
			if _, err := io.ReadFull(dial(t, r), got); err != nil || string(got) != "db.test\n" {
				return fmt.Errorf("read %q, %w", got, err)
			}
			return nil
		})
	}
}

// TestTLSOfClients checks that a port whose TLS caddy-l4 terminates forwards the clients' data and the server name.
func TestTLSOfClients(t *testing.T) {
	w := newWorld(t)
	i := newIdentity(t)
	r := route(ir.TCP, freePort(t), "a")
	r.SendProxy = ir.ProxyV2
	w.set(r, backend(t, func(conn *net.TCPConn) {
		reader := bufio.NewReader(conn)
		h, err := proxyproto.Read(reader)
		if err != nil {
			t.Error(err)
			return
		}
		tlvs, _ := h.TLVs()
		for _, tlv := range tlvs {
			if tlv.Type == proxyproto.PP2_TYPE_AUTHORITY {
				_, _ = conn.Write(tlv.Value)
			}
		}
		_, _ = io.Copy(conn, reader)
	}))
	terminates = &tls.Config{Certificates: []tls.Certificate{i.Pair()}}
	port := one(r)
	port[portName(r)].Server = json.RawMessage(strings.Replace(string(port[portName(r)].Server),
		`"handle":[`, `"handle":[{"handler":"k8singress_test_tls"},`, 1))
	if refused := w.ports.Update(w.ctx, port); len(refused) > 0 {
		t.Fatalf("refused: %v", refused)
	}
	conn := tls.Client(dial(t, r), &tls.Config{ServerName: "db.test", InsecureSkipVerify: true})
	send(t, conn, "hello")
	expect(t, conn, "db.testhello")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	expectAll(t, conn, "")
}

func init() { caddy.RegisterModule(terminator{}) }

// terminator is a handler that terminates the TLS of clients.
type terminator struct{}

var terminates *tls.Config

func (terminator) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "layer4.handlers.k8singress_test_tls",
		New: func() caddy.Module { return new(terminator) }}
}

func (terminator) Handle(cx *layer4.Connection, next layer4.Handler) error {
	secure := tls.Server(cx, terminates)
	if err := secure.HandshakeContext(cx.Context); err != nil {
		return err
	}
	return next.Handle(cx.Wrap(secure))
}
