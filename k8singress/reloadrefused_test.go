package k8singress_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runWithFlags starts `caddy k8singress run` with flags for the ports. It returns the process, its admin API and its
// Caddyfile.
func runWithFlags(t *testing.T) (c *controller, p *process, file string) {
	t.Helper()
	c = newController(t)
	p = processAt(t, socket(t))
	file = filepath.Join(t.TempDir(), "Caddyfile")
	c.write(file, "{\nadmin "+p.address+"\nk8singress {\nreach_allow 127.0.0.0/8\nmanifests "+
		c.manifests(newOrigin(t))+"\n}\n}\n")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host, healthPort, _ := net.SplitHostPort(c.health)
	c.start(program, "k8singress", "run", "--config", file, "--http-port="+portOf(c.http),
		"--https-port="+portOf(c.https),
		"--healthz-port="+healthPort, "--healthz-host="+host)
	return c, p, file
}

// serves returns an error if a request or a probe does not get the expected response.
func (c *controller) serves() error {
	if err := c.probe("/healthz", http.StatusOK); err != nil {
		return err
	}
	status, _, err := c.get(http.DefaultClient, "http://"+c.http+"/")
	if err != nil {
		return err
	}
	return isOK(status)
}

// TestReloadOfRun checks that `caddy reload` with any file changes nothing in a process of `caddy k8singress run`,
// because the new configuration would lack the flags. The error must say what to do instead.
func TestReloadOfRun(t *testing.T) {
	c, p, file := runWithFlags(t)
	other, whole := filepath.Join(t.TempDir(), "Caddyfile"), filepath.Join(t.TempDir(), "caddy.json")
	c.write(other, "{\nadmin "+p.address+"\n}\n")
	c.write(whole, fmt.Sprintf(`{"admin":{"listen":%q},"apps":{}}`, p.address))
	before := p.ask(http.MethodGet, "/config/", "")
	for _, arguments := range [][]string{
		{"--config", file}, {"--config", file, "--force"}, {"--config", other}, {"--config", whole},
		{"--config", other, "--address", p.address},
	} {
		got := runCaddy(t, append([]string{"reload"}, arguments...)...)
		if got.status == 0 || !strings.Contains(got.stderr, "kubectl rollout restart") {
			t.Errorf("%v: status %d, and it says %s", arguments, got.status, got.stderr)
		}
	}
	if after := p.ask(http.MethodGet, "/config/", ""); after.body != before.body || after.status != http.StatusOK {
		t.Errorf("the configuration is another one: %d %s", after.status, after.body)
	}
	if err := c.serves(); err != nil {
		t.Error(err)
	}
}

// TestLoadsOfRun checks that a process of `caddy k8singress run` still accepts the configuration that the controller
// itself writes: it restores a server that was removed through the admin API, and logs the option to use.
func TestLoadsOfRun(t *testing.T) {
	const server = "/config/apps/http/servers/k8singress_http"
	c, p, _ := runWithFlags(t)
	if got := p.ask(http.MethodDelete, server, ""); got.status != http.StatusOK {
		t.Fatalf("taking the server out: %d %s", got.status, got.body)
	}
	p.eventually("the server is back", func() error {
		got := p.ask(http.MethodGet, server, "")
		if got.status != http.StatusOK || !strings.Contains(got.body, portOf(c.http)) {
			return fmt.Errorf("%d %s", got.status, got.body)
		}
		return c.serves()
	})
	p.eventually("the log names the option", func() error {
		log, err := os.ReadFile(c.log)
		if err == nil && !strings.Contains(string(log), "k8singress_http: use the option http") {
			err = fmt.Errorf("the log says %s", log)
		}
		return err
	})
}

// TestReloadOfCaddyRun checks that a process of `caddy run` accepts `caddy reload`.
func TestReloadOfCaddyRun(t *testing.T) {
	c := newController(t)
	p := processAt(t, socket(t))
	folder, file := t.TempDir(), filepath.Join(t.TempDir(), "Caddyfile")
	write := func(class string) {
		c.write(file, strings.Replace(c.caddyfile("ingress_class "+class+"\nmanifests "+folder), "admin off",
			"admin "+p.address, 1))
	}
	write("first")
	c.run(file)
	write("second")
	if got := runCaddy(t, "reload", "--config", file); got.status != 0 {
		t.Fatalf("status %d, and it says %s", got.status, got.stderr)
	}
	if got := p.ask(http.MethodGet, "/config/apps/k8singress/ingress_class",
		""); strings.TrimSpace(got.body) != `"second"` {
		t.Errorf("the class is %s", got.body)
	}
}
