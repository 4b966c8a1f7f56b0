package k8singress_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestSecondProcess checks that a process does not start on an address that another process uses, and that the error
// names the address and a solution. Otherwise each process would get half of the requests.
func TestSecondProcess(t *testing.T) {
	c := launch(t, newOrigin(t), "")
	for option, address := range map[string]string{"http": c.http, "https": c.https, "health": c.health} {
		t.Run(option, func(t *testing.T) {
			second := newController(t)
			switch option {
			case "http":
				second.http = address
			case "https":
				second.https = address
			default:
				second.health = address
			}
			file := filepath.Join(t.TempDir(), "Caddyfile")
			second.write(file, second.caddyfile("manifests "+t.TempDir()))
			got := runCaddy(t, "run", "--config", file)
			if got.status == 0 || !strings.Contains(got.stderr, address) ||
				!strings.Contains(got.stderr, "share_ports") {
				t.Errorf("status %d, and it says %s", got.status, got.stderr)
			}
			// A configuration can still be validated meanwhile.
			if got := runCaddy(t, "validate", "--config", file); got.status != 0 {
				t.Errorf("caddy validate: status %d, %s", got.status, got.stderr)
			}
		})
	}
	for range 20 {
		// Each request uses a new connection, because the kernel chooses the process per connection.
		status, _, err := c.get(&http.Client{Transport: &http.Transport{}}, "http://"+c.http+"/")
		if err != nil || status != http.StatusOK {
			t.Errorf("the first process answers %d, %v", status, err)
		}
	}
}

// TestSecondProcessAtOneHealthPort checks the health port of processes that share nothing else: with share_ports both
// listen there, and with an address for all interfaces the error is the same as for one of them.
func TestSecondProcessAtOneHealthPort(t *testing.T) {
	c := launch(t, newOrigin(t), "share_ports")
	_, port, err := net.SplitHostPort(c.health)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "Caddyfile")
	second := newController(t)
	second.health = ":" + port
	second.write(file, second.caddyfile("manifests "+t.TempDir()))
	got := runCaddy(t, "run", "--config", file)
	if got.status == 0 || !strings.Contains(got.stderr, "listening on :"+port) ||
		strings.Count(got.stderr, "share_ports") != 1 {
		t.Errorf("status %d, and it says %s", got.status, got.stderr)
	}
	second.health = c.health
	second.write(file, second.caddyfile("share_ports\nmanifests "+second.manifests(newOrigin(t))))
	second.run(file)
	second.becomes("an answer of the second process", second.serves)
}

// TestSecondProcessOfHTTP3 does the same for UDP, which only HTTP/3 uses.
func TestSecondProcessOfHTTP3(t *testing.T) {
	c := newController(t)
	address, err := caddy.ParseNetworkAddress("udp/" + c.https)
	if err != nil {
		t.Fatal(err)
	}
	// Caddy listens as in another process, so that the port can be shared.
	held, err := address.Listen(t.Context(), 0, net.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer held.(io.Closer).Close()
	file := filepath.Join(t.TempDir(), "Caddyfile")
	c.write(file, c.caddyfile("manifests "+t.TempDir()))
	if got := runCaddy(t, "run", "--config", file); got.status == 0 || !strings.Contains(got.stderr, "udp/"+c.https) {
		t.Errorf("status %d, and it says %s", got.status, got.stderr)
	}
	c.write(file, c.caddyfile("http3 off\nmanifests "+t.TempDir()))
	c.run(file)
}

// TestSharedPorts checks that with share_ports, a new process can take over from an old one on the same machine without
// an interruption.
func TestSharedPorts(t *testing.T) {
	o := newOrigin(t)
	c := launch(t, o, "http3 off\nshare_ports")
	second := newController(t)
	second.http, second.https, second.stream = c.http, c.https, c.stream
	file := filepath.Join(t.TempDir(), "Caddyfile")
	c.write(file, second.caddyfile("http3 off\nshare_ports\nmanifests "+second.manifests(o)))
	second.run(file)
	c.terminate()
	c.ends()
	if err := second.serves(); err != nil {
		t.Error(err)
	}
}

// TestRestart checks that a process can start at once on the addresses of a process that has just exited.
func TestRestart(t *testing.T) {
	o := newOrigin(t)
	c := launch(t, o, "")
	if err := c.serves(); err != nil {
		t.Error(err)
	}
	c.terminate()
	c.ends()
	file := filepath.Join(t.TempDir(), "Caddyfile")
	c.write(file, c.caddyfile("manifests "+c.manifests(o)))
	c.run(file)
	if err := c.serves(); err != nil {
		t.Error(err)
	}
}

// TestAddressesMoveWithinAProcess checks that a configuration can take over addresses from the configuration before:
// from one interface to all, from all to one, and between a Caddy site and the controller.
func TestAddressesMoveWithinAProcess(t *testing.T) {
	port, health := fixture.Port(t), fixture.Address(t)
	one, all := "127.0.0.1:"+port, ":"+port
	p := start(t, socket(t), `{}`)
	c := &controller{T: t, health: health}
	for _, step := range []struct{ http, site string }{{one, ""}, {all, ""}, {one, ""}, {"", all}, {one, ""},
		{"", one}, {all, ""}} {
		site := ""
		if step.site != "" {
			site = fmt.Sprintf(
				`"http":{"servers":{"site":{"listen":[%q],"routes":[{"handle":[{"handler":"static_response",`+
					`"status_code":404}]}]}}},`,
				step.site)
		}
		http1 := "[]"
		if step.http != "" {
			http1 = fmt.Sprintf("[%q]", step.http)
		}
		if err := p.reload(`{"k8singress":{"http":`+http1+`,"https":[]`+followed(t.TempDir())+ofAdmin(p.address)+`}}`,
			site, ""); err != nil {
			t.Fatalf("%+v: %v", step, err)
		}
		p.awaitReady()
		p.eventually("an answer", func() error {
			status, _, err := c.get(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
				"http://"+one+"/")
			if status != http.StatusNotFound {
				return fmt.Errorf("%d, %w", status, err)
			}
			return nil
		})
	}
}
