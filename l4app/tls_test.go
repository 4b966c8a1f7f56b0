package l4app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// tlsWorld is a world whose ports may terminate TLS.
type tlsWorld struct {
	*world
}

func newTLSWorld(t *testing.T) *tlsWorld {
	t.Helper()
	return &tlsWorld{newWorld(t)}
}

// private returns a route whose port terminates TLS with a Secret. The store watches the Secret, and certify sets it.
func (s *tlsWorld) private() *ir.StreamRoute {
	s.t.Helper()
	r := route(ir.TCP, freePort(s.t), "a")
	r.TLS = &ir.StreamTLS{Secret: ir.Name{Namespace: "shop", Name: "db"}}
	s.Trust.Update(&document.Delta{Ports: one(r)})
	return r
}

// certify puts a certificate for a host into the Secret of the ports.
func (s *tlsWorld) certify(host string) {
	s.t.Helper()
	s.setSecret(fixture.Identify(s.t, nil, &x509.Certificate{DNSNames: []string{host}}).Secret())
}

// setSecret sets the contents of the Secret of the ports; nil means that the Secret does not exist.
func (s *tlsWorld) setSecret(data map[string][]byte) {
	s.Trust.SetSecret(ir.Name{Namespace: "shop", Name: "db"}, data, data != nil)
	s.Certificates.SetSecret(ir.Name{Namespace: "shop", Name: "db"}, data, data != nil)
}

// client performs a TLS handshake on a connection to a port.
func (s *tlsWorld) client(r *ir.StreamRoute, config *tls.Config) (*tls.Conn, error) {
	s.t.Helper()
	config.InsecureSkipVerify = true
	conn := tls.Client(dial(s.t, r), config)
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	return conn, conn.HandshakeContext(ctx)
}

func (s *tlsWorld) shows(r *ir.StreamRoute, host string) {
	s.t.Helper()
	conn, err := s.client(r, &tls.Config{ServerName: "whoever.example"})
	if err != nil {
		s.t.Fatal(err)
	}
	if got := conn.ConnectionState().PeerCertificates[0].DNSNames; len(got) != 1 || got[0] != host {
		s.t.Errorf("the certificate is for %q, want %s", got, host)
	}
}

func TestTLSEndsAtThePort(t *testing.T) {
	s := newTLSWorld(t)
	r := s.private()
	s.set(r, named(t, "a"))
	if conn, err := s.client(r, &tls.Config{}); err == nil {
		t.Error("without a certificate there is ", conn.ConnectionState().PeerCertificates[0].DNSNames)
	}
	await(t, "the count of the failure", func() bool { return s.failed(r, noHandshake) == 1 })
	dial(t, r).Close()
	s.certify("db.example")
	conn, err := s.client(r, &tls.Config{ServerName: "db.example"})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, conn, "a")
	send(t, conn, "and back")
	expect(t, conn, "and back")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
		t.Errorf("the end is %q, %v", rest, err)
	}
	s.certify("next.example")
	s.shows(r, "next.example")
	if n := s.failed(r, noHandshake); n != 1 {
		t.Errorf("%d failures are counted, want 1: who only connects is none", n)
	}
}

// TestTLSFailsClosed checks that a resumed session is rejected if the Secret has become invalid.
func TestTLSFailsClosed(t *testing.T) {
	s := newTLSWorld(t)
	r := s.private()
	s.certify("db.example")
	s.set(r, named(t, "a"))
	sessions := &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(1), ServerName: "db.example"}
	for _, resumed := range []bool{false, true} {
		conn, err := s.client(r, sessions)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, conn, "a")
		if got := conn.ConnectionState().DidResume; got != resumed {
			t.Errorf("resumed is %t, want %t", got, resumed)
		}
	}
	for name, data := range map[string]map[string][]byte{"garbage": {"tls.crt": []byte("x"), "tls.key": []byte("x")},
		"nothing": nil} {
		s.setSecret(data)
		if _, err := s.client(r, sessions); err == nil {
			t.Error("a client gets in with", name)
		}
		var said []string
		for _, v := range s.Trust.Problems() {
			said = append(said, v.Object.String()+" "+v.Problems[0].Message)
		}
		if all := strings.Join(said, "\n"); !strings.Contains(all, "ConfigMap/test/services Secret shop/db") ||
			!strings.Contains(all, "every TLS handshake fails for port "+portName(r)) {
			t.Errorf("%s: it is said %q", name, all)
		}
	}
}

func TestTLSOfAHost(t *testing.T) {
	s := newTLSWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	r.TLS = &ir.StreamTLS{Host: "db.example"}
	s.set(r, named(t, "a"))
	if _, err := s.client(r, &tls.Config{ServerName: "db.example"}); err == nil {
		t.Error("there is a certificate before there is one")
	}
	s.Certificates.Update(map[string]*ir.Certificate{"db.example": {Secret: ir.Name{Namespace: "shop", Name: "db"}}})
	s.certify("db.example")
	s.shows(r, "db.example")
}

// TestTLSVersionsAndProtocols checks which TLS versions and application protocols a client may request.
func TestTLSVersionsAndProtocols(t *testing.T) {
	s := newTLSWorld(t)
	r := s.private()
	s.certify("db.example")
	s.set(r, named(t, "a"))
	for _, test := range []struct {
		name     string
		config   *tls.Config
		protocol string
		fails    bool
	}{
		{"nothing", &tls.Config{}, "", false},
		{"1.1", &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, "", true},
		{"1.2", &tls.Config{MaxVersion: tls.VersionTLS12}, "", false},
		{"one protocol", &tls.Config{NextProtos: []string{"postgresql"}}, "postgresql", false},
		{"two", &tls.Config{NextProtos: []string{"h2", "http/1.1"}}, "", false},
	} {
		conn, err := s.client(r, test.config)
		if (err != nil) != test.fails {
			t.Errorf("%s: %v", test.name, err)
		}
		if got := conn.ConnectionState().NegotiatedProtocol; got != test.protocol {
			t.Errorf("%s: the protocol is %q", test.name, got)
		}
	}
}

// TestTLSBehindABalancer checks that the PROXY protocol header of a load balancer is read before TLS, and that the
// endpoint gets the client's address.
func TestTLSBehindABalancer(t *testing.T) {
	s := newTLSWorld(t)
	r := s.private()
	r.AcceptProxy, r.SendProxy = true, ir.ProxyV1
	s.certify("db.example")
	s.set(r, named(t, ""))
	raw := dial(t, r)
	const header = "PROXY TCP4 192.0.2.1 192.0.2.2 1111 2222\r\n"
	send(t, raw, header)
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
	send(t, conn, "first")
	expect(t, conn, header+"first")
}

// TestTLSIsNotGuessed checks that invalid settings are rejected before the port is opened.
func TestTLSIsNotGuessed(t *testing.T) {
	s := newTLSWorld(t)
	for name, settings := range map[string]ir.StreamTLS{"nothing": {},
		"both": {Secret: ir.Name{Namespace: "a", Name: "b"}, Host: "c.example"}} {
		if err := (&TLS{StreamTLS: settings}).Provision(s.ctx); err == nil {
			t.Error(name, "is taken")
		}
	}
	if err := (&TLS{StreamTLS: ir.StreamTLS{Host: "a.example"}}).Provision(
		caddy.Context{Context: context.Background()}); err == nil {
		t.Error("a port that is none of ours is taken")
	}
}

// TestTLSOfASilentClient checks that a handshake times out. The test takes as long as the timeout.
func TestTLSOfASilentClient(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	t.Parallel()
	s := newTLSWorld(t)
	r := s.private()
	s.certify("db.example")
	s.set(r, named(t, "a"))
	conn, begin := dial(t, r), time.Now()
	send(t, conn, "\x16\x03\x01")
	if err := conn.SetReadDeadline(begin.Add(2 * tlsTime)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil && !isReset(err) {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < tlsTime/2 || took > tlsTime*3/2 {
		t.Errorf("it took %v", took)
	}
}

// isReset reports whether the peer has reset the connection.
func isReset(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && !failed.Timeout()
}
