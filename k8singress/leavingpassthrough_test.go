package k8singress_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/fixture"
)

// pass opens a connection to the host that leaves TLS to its backend, and makes sure that the backend ends it.
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

// exchanges has many bytes come back, and closes the connection.
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
	if err = errors.Join(err, fixture.Receive(c, "the end of sending", sent), conn.Close()); err != nil || !bytes.Equal(heard, said) {
		c.Errorf("%d of %d bytes came back, %v", len(heard), len(said), err)
	}
}

// TestEndOfPassthrough holds that SIGTERM cuts no connection that is passed through: new ones are taken while clients are asked
// to go elsewhere, and none any more after that; those that are open are finished.
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

// TestPassthroughThatDoesNotEnd holds that the process ends without it at the same limit as for TCP ports, and that what ends
// before loses nothing.
func TestPassthroughThatDoesNotEnd(t *testing.T) {
	const timeout = 2 * time.Second
	for range ends {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			c := launch(t, o, "ssl_passthrough\nshutdown_timeout "+timeout.String())
			stays, finishes := c.pass(o), c.pass(o)
			c.cutsOff(stays, timeout, func() {
				c.becomes("no listener", refuses(c.https))
				c.exchanges(finishes)
			})
		})
	}
}
