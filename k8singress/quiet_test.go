package k8singress_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// quietCaddyfile has the format of caddy fmt, and needs the addresses of the admin API, HTTP, HTTPS and the health
// port, and a folder.
const quietCaddyfile = `{
	admin %s
	k8singress {
		reach_allow 127.0.0.0/8
		http %s
		https %s
		health %s
		ssl_passthrough
		manifests %s
	}
}
`

// unwanted finds the lines of a log that no user can act on: warnings, errors, and requests that the controller has
// sent to the admin API.
var unwanted = regexp.MustCompile(`(?m)^.*("level":"(warn|error)"|"received request").*$`)

// TestQuietStart checks that a process without any mistake in its configuration and manifests logs no warning, and no
// request to the admin API.
func TestQuietStart(t *testing.T) {
	c, o := newController(t), newOrigin(t)
	file := filepath.Join(t.TempDir(), "Caddyfile")
	c.write(file, fmt.Sprintf(quietCaddyfile, fixture.Address(t), c.http, c.https, c.health, c.manifests(o)))
	c.run(file)
	if status, _, err := c.get(&http.Client{}, "http://"+c.http+"/"); err != nil || status != http.StatusOK {
		t.Errorf("a request gets %d, %v", status, err)
	}
	log, err := os.ReadFile(c.log)
	if err != nil {
		t.Fatal(err)
	}
	if found := unwanted.FindAll(log, -1); found != nil {
		t.Errorf("the log has\n%s", found)
	}
}

// TestResume checks that the log says why --resume does not help, with and without a file that Caddy resumes.
func TestResume(t *testing.T) {
	for name, text := range map[string]string{"": "there is nothing to resume", "autosave.json": "may be outdated"} {
		t.Run(text, func(t *testing.T) {
			c, folder := newController(t), t.TempDir()
			file := filepath.Join(t.TempDir(), "Caddyfile")
			c.write(file, c.caddyfile("manifests "+c.manifests(newOrigin(t))))
			if name != "" {
				saved := runCaddy(t, "adapt", "--config", file)
				if err := os.Mkdir(filepath.Join(folder, "caddy"), 0o700); err != nil {
					t.Fatal(err)
				}
				c.write(filepath.Join(folder, "caddy", name), saved.stdout)
			}
			c.spawn([]string{"XDG_CONFIG_HOME=" + folder}, executable(t), "run", "--resume", "--config", file)
			c.becomes("ready", func() error { return c.probe("/readyz", http.StatusOK) })
			if err := c.logs(text, "1"); err != nil {
				t.Error(err)
			}
		})
	}
}
