package main

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// certificateFile writes a certificate and its key to a file.
func certificateFile(t *testing.T, folder string) string {
	t.Helper()
	m, err := newMaker()
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, err := m.issue(hostName(secureHost))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(folder, "certificate.pem")
	if err := os.WriteFile(name, append(certificate, key...), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// serveTLS starts a server that presents the same certificate for every server name.
func serveTLS(t *testing.T, host string) (address string) {
	t.Helper()
	m, err := newMaker()
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, err := m.issue(host)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	listener := fixture.Listen(t)
	fixture.Serve(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}}), func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1)) // Wait until the client closes the connection.
	})
	return listener.Addr().String()
}

func TestHandshakes(t *testing.T) {
	address := serveTLS(t, hostName(1))
	got := handshakes{repetition{clients: 2, duration: 100 * time.Millisecond}, address, 1}.count(t.Context())
	if got.first != nil || got.perSecond == 0 || got.p50 == 0 {
		t.Errorf("figures are %+v, error %v", got.figures, got.first)
	}
}

// TestHandshakesWithTheWrongCertificate checks that a certificate of another host is a failure.
func TestHandshakesWithTheWrongCertificate(t *testing.T) {
	address := serveTLS(t, "other.test")
	for _, tolerant := range []bool{false, true} {
		got := handshakes{repetition{clients: 1, duration: 100 * time.Millisecond, tolerant: tolerant}, address,
			1}.count(t.Context())
		if got.failed == 0 || len(got.latencies) > 0 || tolerant != (got.failed > 1) {
			t.Errorf("tolerant %v: %d failed, %d did not", tolerant, got.failed, len(got.latencies))
		}
	}
}

func TestBarsOfHandshakes(t *testing.T) {
	fast, slow := []figures{{perSecond: 100}}, []figures{{perSecond: 90}}
	of := func(rounds []figures) *contestant { return &contestant{first: rounds, hosts: 1} }
	f := &terminators{plain: of(fast), one: of(slow), many: of(slow),
		rotation: &tally{latencies: make([]time.Duration, 7)}}
	met := func() (all string) {
		for _, b := range f.bars() {
			all += b.Met + " "
		}
		return all
	}
	if got := met(); got != "yes no  yes " {
		t.Errorf("met: %s", got)
	}
	f.rotation.fail(net.ErrClosed)
	if got := met(); got != "yes no  no " {
		t.Errorf("met with a failure: %s", got)
	}
	var text strings.Builder
	if err := f.write(options{rounds: 1}, &text); err != nil ||
		!strings.Contains(text.String(), "| plain Caddy | 1 | 100 | - | 1.00 |") {
		t.Errorf("error %v in:\n%s", err, text.String())
	}
}
