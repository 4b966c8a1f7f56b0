package k8singress_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

const withStreams = "\ntcp_services default/tcp-services\nstream_bind 127.0.0.1"

// open opens a connection through the TCP port.
func (c *controller) open() net.Conn {
	c.Helper()
	return c.upgradeAt(c.stream)
}

func (c *controller) streamRefuses() error {
	conn, err := net.DialTimeout("tcp", c.stream, patience)
	if err == nil {
		return errors.Join(errors.New("it accepts"), conn.Close())
	}
	return nil
}

// TestEndOfTCPPorts holds that SIGTERM cuts no connection of a TCP port: new ones are taken while clients are asked to go
// elsewhere, and those that are open are finished.
func TestEndOfTCPPorts(t *testing.T) {
	for range ends {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			c := launch(t, newOrigin(t), "shutdown_delay 2s\nshutdown_timeout 10m"+withStreams)
			before := c.open()
			c.terminate()
			c.becomes("not ready", func() error { return c.probe("/readyz", 503) })
			late := c.open()
			c.becomes("no TCP port", c.streamRefuses)
			c.echoes(before)
			c.echoes(late)
			begin := time.Now()
			if err := errors.Join(before.Close(), late.Close()); err != nil {
				t.Error(err)
			}
			c.ends()
			if took := time.Since(begin); took > patience {
				t.Errorf("with nothing under way, it still took %v", took)
			}
		})
	}
}

// TestConnectionsThatDoNotEnd holds that the process ends without them.
func TestConnectionsThatDoNotEnd(t *testing.T) {
	const timeout = 2 * time.Second
	for range ends {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			c := launch(t, newOrigin(t), "shutdown_timeout "+timeout.String()+withStreams)
			conn := c.open()
			begin := time.Now()
			c.terminate()
			c.echoes(conn)
			if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the connection ends with %v", err)
			}
			c.ends()
			if took := time.Since(begin); took < timeout-100*time.Millisecond || took > timeout+patience {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestEndWithoutConnections holds that nothing is waited for that is not there.
func TestEndWithoutConnections(t *testing.T) {
	c := launch(t, newOrigin(t), "shutdown_timeout 10m"+withStreams)
	c.open().Close()
	begin := time.Now()
	c.terminate()
	c.ends()
	if took := time.Since(begin); took > patience {
		t.Errorf("with nothing under way, it still took %v", took)
	}
}
