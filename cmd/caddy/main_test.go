package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asCaddy is the environment variable that makes the test binary run as the caddy command.
const asCaddy = "K8SINGRESS_TEST_AS_CADDY"

func TestMain(m *testing.M) {
	if os.Getenv(asCaddy) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestProgramsOfIngressNginx runs the binary of the image under the names of ingress-nginx's programs.
func TestProgramsOfIngressNginx(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		arguments []string
		begin     string
	}{
		{"nginx-ingress-controller", []string{"--version"}, "k8singress "},
		{"caddy", []string{"/nginx-ingress-controller", "--version"}, "k8singress "},
		{"caddy", []string{"k8singress", "run", "--version"}, "k8singress "},
		{"wait-shutdown", []string{"version"}, ""},
	} {
		link := filepath.Join(t.TempDir(), c.name)
		if err := os.Symlink(program, link); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), link, c.arguments...)
		cmd.Env = append(os.Environ(), asCaddy+"=yes")
		out, err := cmd.Output()
		if err != nil || !strings.HasPrefix(string(out), c.begin) || c.begin == "" && len(out) > 0 {
			t.Errorf("%s %q: %v, %q", c.name, c.arguments, err, out)
		}
	}
}
