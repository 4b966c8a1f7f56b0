package netaddr_test

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/process/netaddr"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// holdBy opens an address until the test ends.
func holdBy(t *testing.T, open func() (io.Closer, error)) {
	t.Helper()
	held, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
}

// byCaddy opens an address as a configuration of this process does.
func byCaddy(t *testing.T, address string) func() (io.Closer, error) {
	return func() (io.Closer, error) {
		opened, err := parse(t, address).Listen(t.Context(), 0, net.ListenConfig{})
		if err != nil {
			return nil, err
		}
		return opened.(io.Closer), nil
	}
}

// TestTryOthers checks which listeners keep an address from being opened: those that are no listeners of Caddy in this
// process.
func TestTryOthers(t *testing.T) {
	ipv4 := func(port string) string { return "127.0.0.1:" + port }
	tcp := func(port string) func() (io.Closer, error) {
		return func() (io.Closer, error) { return net.Listen("tcp", ipv4(port)) }
	}
	udp := func(port string) func() (io.Closer, error) {
		return func() (io.Closer, error) { return net.ListenPacket("udp", ipv4(port)) }
	}
	for name, c := range map[string]struct {
		held    func(port string) func() (io.Closer, error)
		address func(port string) string
		want    error
	}{
		"TCP":                    {tcp, ipv4, netaddr.ErrOthers},
		"TCP, all addresses":     {tcp, func(port string) string { return ":" + port }, netaddr.ErrOthers},
		"UDP":                    {udp, func(port string) string { return "udp/127.0.0.1:" + port }, netaddr.ErrOthers},
		"TCP beside UDP":         {udp, ipv4, nil},
		"TCP, another interface": {tcp, func(port string) string { return "127.0.0.2:" + port }, nil},
		"a port of any number":   {tcp, func(string) string { return "127.0.0.1:0" }, nil},
		"a configuration": {
			func(port string) func() (io.Closer, error) { return byCaddy(t, ipv4(port)) }, ipv4, nil,
		},
		"a configuration, one of all addresses": {
			func(port string) func() (io.Closer, error) { return byCaddy(t, ipv4(port)) },
			func(port string) string { return ":" + port }, nil,
		},
		"a configuration, all addresses": {
			func(port string) func() (io.Closer, error) { return byCaddy(t, ":"+port) }, ipv4, nil,
		},
		"a configuration, UDP": {
			func(port string) func() (io.Closer, error) { return byCaddy(t, "udp/:"+port) },
			func(port string) string { return "udp/127.0.0.1:" + port }, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			port := fixture.Port(t)
			holdBy(t, c.held(port))
			if err := netaddr.TryOthers(t.Context(), parse(t, c.address(port))); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

// TestTryOthersAfterConnections checks that a port can be opened whose last connections are still known to the kernel
// (TIME_WAIT), as after a restart.
func TestTryOthersAfterConnections(t *testing.T) {
	address := fixture.Address(t)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	// The side that closes first keeps the port.
	for _, each := range []io.Closer{server, listener} {
		if err := each.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err := netaddr.TryOthers(t.Context(), parse(t, address)); err != nil {
		t.Error(err)
	}
}

// TestTryOthersOfUnixSockets checks that the file of a socket whose process has ended is no reason not to start.
func TestTryOthersOfUnixSockets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "socket")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: file, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := netaddr.TryOthers(t.Context(), caddy.NetworkAddress{Network: "unix", Host: file}); err != nil {
		t.Error(err)
	}
}
