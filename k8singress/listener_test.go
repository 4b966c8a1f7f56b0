package k8singress_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestHandshakeTimeout checks that TLS handshakes have their own time limit, which does not apply after the
// handshake.
func TestHandshakeTimeout(t *testing.T) {
	address := fixture.Address(t)
	start(t, socket(t), fmt.Sprintf(`{
		"http": {"servers": {"s": {
			"listen": [%q], "automatic_https": {"disable": true}, "tls_connection_policies": [{}],
			"listener_wrappers": [{"wrapper": "k8singress", "handshake_timeout": "300ms"}, {"wrapper": "tls"}],
			"routes": [{"handle": [{"handler": "static_response", "body": "ok"}]}]
		}}},
		"tls": {"automation": {"policies": [{"get_certificate": [{"via": "k8singress"}]}]}},
		"k8singress": {"http": [], "https": [], "admin": "off", "live": {}}
	}`, address))
	dial := func() net.Conn {
		conn, err := net.DialTimeout("tcp", address, patience)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	complete := tls.Client(dial(), &tls.Config{InsecureSkipVerify: true})
	if err := complete.Handshake(); err != nil {
		t.Fatal(err)
	}
	silent, half := dial(), dial()
	// The header of a record with a ClientHello and nothing else.
	if _, err := io.WriteString(half, "\x16\x03\x01\x02\x00\x01"); err != nil {
		t.Fatal(err)
	}
	for name, conn := range map[string]net.Conn{"silence": silent, "half a ClientHello": half} {
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("%s: it is not closed: %v", name, err)
		}
	}
	// The time limit of the first connection's handshake has passed by now, too.
	fmt.Fprint(complete, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(complete), nil)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("after the handshake: %v %v", response, err)
	}
	_ = response.Body.Close()
}
