package k8singress_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestShow queries an admin API on a Unix socket that only its own user may open, as in deploy/.
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
	for what, want := range map[string]struct{ path, text string }{
		"status":  {"/k8singress/status", `"generation":`},
		"objects": {"/k8singress/objects", `Ingress`},
		"config":  {"/k8singress/config", `"apps"`},
		"metrics": {"/metrics", "k8singress_config_reloads_total"},
	} {
		for _, flags := range [][]string{{"--config", file}, {"--address", at}} {
			for _, command := range [][]string{{"show", what}, {"get", want.path}} {
				got := run(t, append(command, flags...)...)
				if got.status != 0 || !strings.Contains(got.stdout, want.text) {
					t.Errorf("%q %q: status %d: %s%s", command, flags, got.status, got.stdout, got.stderr)
				}
			}
		}
	}
	showRefuses(t, at)
	showAdapts(t, file)
}

// showAdapts checks that the flag --adapter is accepted, which Caddy's error for a Caddyfile with another name
// suggests.
func showAdapts(t *testing.T, caddyfile string) {
	t.Helper()
	file := filepath.Join(filepath.Dir(caddyfile), "edge.conf")
	if err := os.Rename(caddyfile, file); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"show", "status"}, {"get", "/k8singress/status"}} {
		command = append(command, "--config", file)
		if got := run(t, command...); got.status == 0 || !strings.Contains(got.stderr, "--adapter") {
			t.Errorf("%q: status %d: %s", command, got.status, got.stderr)
		}
		command = append(command, "--adapter", "caddyfile")
		if got := run(t, command...); got.status != 0 || !strings.Contains(got.stdout, `"generation":`) {
			t.Errorf("%q: status %d: %s%s", command, got.status, got.stdout, got.stderr)
		}
	}
}

// showRefuses checks the errors for arguments that do not exist.
func showRefuses(t *testing.T, at string) {
	t.Helper()
	for what, want := range map[string]string{"everything": "everything", "": `invalid argument ""`} {
		if got := run(t, "show", what, "--address", at); got.status == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("show %q: status %d: %s", what, got.status, got.stderr)
		}
	}
	for path, want := range map[string]string{"/k8singress/nothing": "404", "status": "starts with a slash",
		"": "starts with a slash"} {
		if got := run(t, "get", path, "--address", at); got.status == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("get %q: status %d: %s", path, got.status, got.stderr)
		}
	}
	if got := run(t, "show", "status", "--address", at+"x"); got.status == 0 ||
		!strings.Contains(got.stderr, "querying the admin API at "+at+"x") {
		t.Errorf("without a socket: status %d: %s", got.status, got.stderr)
	}
}
