package daemons

import (
	"syscall"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// Redis is a running server without data, together with its client.
type Redis struct {
	// Address is the address on which the server listens.
	Address string

	cli string
}

// StartRedis runs a Redis server. The test is skipped if Debian's packages redis-server and redis-tools are not
// installed.
func StartRedis(t testing.TB) *Redis {
	t.Helper()
	server := Program(t, "redis-server", "redis-server")
	r := &Redis{Address: fixture.Address(t), cli: Program(t, "redis-cli", "redis-tools")}
	d := newDaemon(t)
	_, port := split(t, r.Address)
	d.start(syscall.SIGTERM, server, "--bind", "127.0.0.1", "--port", port, "--dir", d.folder, "--save", "",
		"--appendonly", "no")
	fixture.Eventually(t, "Redis", func() error {
		_, err := run(t.Context(), "", nil, r.cli, "-h", "127.0.0.1", "-p", port, "-e", "ping")
		return err
	})
	return r
}

// Run runs redis-cli with the given input and arguments, and returns its output. redis-cli connects to the given
// address.
func (r *Redis) Run(t testing.TB, address, input string, arguments ...string) string {
	t.Helper()
	host, port := split(t, address)
	output, err := run(t.Context(), input, nil, r.cli, append([]string{"-h", host, "-p", port, "-e"}, arguments...)...)
	if err != nil {
		t.Fatalf("redis-cli %v: %v", arguments, err)
	}
	return output
}
