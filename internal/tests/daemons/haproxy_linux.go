package daemons

import (
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// haproxyConfig is the format string of HAProxy's configuration. Its three arguments are the listen address, the mode,
// and the content of the backend section.
const haproxyConfig = `global
	log stderr format raw local0 crit
defaults
	mode %[2]s
	timeout connect 60s
	timeout client 60s
	timeout server 60s
frontend clients
	bind %[1]s
	default_backend servers
backend servers
%[3]s
`

// StartHAProxy runs HAProxy with the given listen address, mode (tcp or http) and content of the backend section. The
// test is skipped if Debian's package haproxy is not installed.
func StartHAProxy(t testing.TB, address, mode, backend string) {
	t.Helper()
	path := Program(t, "haproxy", "haproxy", "/usr/sbin")
	d := newDaemon(t)
	config := d.write("haproxy.cfg", fmt.Sprintf(haproxyConfig, address, mode, backend))
	d.start(syscall.SIGTERM, path, "-db", "-f", config)
	listens(t, "haproxy", address)
}

// listens waits until a server accepts connections.
func listens(t testing.TB, name, address string) {
	t.Helper()
	fixture.Eventually(t, name, func() error {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
}
