package daemons

import (
	"path/filepath"
	"syscall"
	"testing"
)

// StartPrometheus runs Prometheus at an address with a configuration, until the test ends.
func StartPrometheus(t testing.TB, address, configuration string) {
	t.Helper()
	program := Program(t, "prometheus", "prometheus")
	d := newDaemon(t)
	d.start(syscall.SIGTERM, program, "--config.file="+d.write("prometheus.yml", configuration),
		"--storage.tsdb.path="+filepath.Join(d.folder, "data"), "--web.listen-address="+address, "--log.level=warn")
}
