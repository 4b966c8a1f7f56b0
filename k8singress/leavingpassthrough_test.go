package k8singress_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// pass opens a connection to the host with TLS passthrough and checks that the backend terminates TLS.
func (c *controller) pass(o *origin) *tls.Conn {
	c.Helper()
	dialer := &net.Dialer{Timeout: patience}
	conn, err := tls.DialWithDialer(dialer, "tcp", c.https, &tls.Config{ServerName: "secure", InsecureSkipVerify: true})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = conn.Close() })
	if shown := conn.ConnectionState().PeerCertificates[0]; !shown.Equal(o.secure.Certificate()) {
		c.Fatalf("the certificate is that of %s", shown.Subject)
	}
	c.upgradeOn(conn)
	return conn
}

// exchanges checks that a large amount of data is echoed, and closes the connection.
func (c *controller) exchanges(conn *tls.Conn) {
	c.Helper()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		c.Fatal(err)
	}
	said := bytes.Repeat([]byte("all of it "), 400_000)
	sent := make(chan error, 1)
	go func() {
		_, err := conn.Write(said)
		sent <- errors.Join(err, conn.CloseWrite())
	}()
	heard, err := io.ReadAll(conn)
	if err = errors.Join(err, fixture.Receive(c, "the end of sending", sent), conn.Close()); err != nil ||
		!bytes.Equal(heard, said) {
		c.Errorf("%d of %d bytes came back, %v", len(heard), len(said), err)
	}
}

// TestEndOfPassthrough checks that SIGTERM cuts off no passthrough connection. New connections are accepted while
// clients are asked to leave, and rejected after that. Open connections are completed.
func TestEndOfPassthrough(t *testing.T) {
	for range ends {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			c := launch(t, o, "ssl_passthrough\nshutdown_delay 2s\nshutdown_timeout 10m")
			before := c.pass(o)
			c.terminate()
			c.becomes("not ready", func() error { return c.probe("/readyz", 503) })
			late := c.pass(o)
			c.becomes("no listener", refuses(c.https))
			c.echoes(before)
			c.exchanges(late)
			c.echoes(before)
			c.exchanges(before)
			c.endsWithout()
		})
	}
}

// TestExitWithOpenPassthrough checks that passthrough connections have the same time limit as connections to TCP
// ports, and that connections that end earlier lose no data.
func TestExitWithOpenPassthrough(t *testing.T) {
	for range ends {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			c := launch(t, o, "ssl_passthrough\nshutdown_timeout "+cutoff.String())
			stays, finishes := c.pass(o), c.pass(o)
			c.cutsOff(stays, func() {
				c.becomes("no listener", refuses(c.https))
				c.exchanges(finishes)
			})
		})
	}
}
