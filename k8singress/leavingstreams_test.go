package k8singress_test

import (
	"net"
	"os"
	"strings"
	"testing"
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

// TestEndOfTCPPorts checks that SIGTERM cuts off no connection to a TCP port. New connections are accepted while
// clients are asked to leave. Open connections are completed.
func TestEndOfTCPPorts(t *testing.T) {
	for range ends {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			c := launch(t, newOrigin(t), "shutdown_delay 2s\nshutdown_timeout 10m"+withStreams)
			before := c.open()
			c.terminate()
			c.becomes("not ready", func() error { return c.probe("/readyz", 503) })
			late := c.open()
			c.becomes("no TCP port", refuses(c.stream))
			c.echoes(before)
			c.echoes(late)
			c.endsWithout(before, late)
		})
	}
}

// TestExitWithOpenConnections checks that the process exits although connections are still open, and that these are in
// the access log.
func TestExitWithOpenConnections(t *testing.T) {
	for range ends {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			c := launch(t, newOrigin(t), "shutdown_timeout "+cutoff.String()+withStreams)
			c.cutsOff(c.open())
			text, err := os.ReadFile(c.command.Stdout.(*os.File).Name())
			if err != nil || strings.Count(string(text), "] TCP 200 ") != 1 {
				t.Errorf("the log has no line of the connection, or several; error %v", err)
			}
		})
	}
}

// TestEndWithoutConnections checks that the process exits at once if there are no connections.
func TestEndWithoutConnections(t *testing.T) {
	c := launch(t, newOrigin(t), "shutdown_timeout 10m"+withStreams)
	c.open().Close()
	c.terminate()
	c.endsWithout()
}
