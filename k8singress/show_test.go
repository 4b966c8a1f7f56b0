package k8singress_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestShow asks an admin API on a socket, as the one of deploy/controller.yaml, that only its own user may open.
func TestShow(t *testing.T) {
	at := socket(t)
	p := start(t, at+"|0600", app(`,"source":{"manifests":{"dir":`+strconv.Quote(manifests("clean"))+`}}`))
	p.awaitReady()
	if info, err := os.Stat(strings.TrimPrefix(at, "unix/")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has the mode %v, error %v", info.Mode(), err)
	}
	file := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(file, []byte("{\n\tadmin "+at+"|0600\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]string{
		"status": `"generation":`, "objects": `Ingress`, "config": `"apps"`, "metrics": "k8singress_config_reloads_total",
	} {
		for _, flags := range [][]string{{"--config", file}, {"--address", at}} {
			got := run(t, append([]string{"show", what}, flags...)...)
			if got.status != 0 || !strings.Contains(got.stdout, want) {
				t.Errorf("show %s %q: status %d: %s%s", what, flags, got.status, got.stdout, got.stderr)
			}
		}
	}
	for what, want := range map[string]string{"everything": "everything", "": `invalid argument ""`} {
		if got := run(t, "show", what, "--address", at); got.status == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("show %q: status %d: %s", what, got.status, got.stderr)
		}
	}
	if got := run(t, "show", "status", "--address", at+"x"); got.status == 0 || !strings.Contains(got.stderr, "asking the admin API at "+at+"x") {
		t.Errorf("without a socket: status %d: %s", got.status, got.stderr)
	}
}
