package k8singress_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// awaitReason waits until all objects have been applied and the process is not ready for a reason that contains text.
func (p *process) awaitReason(text string) {
	p.Helper()
	p.eventually("not ready because of "+text, func() error {
		r, err := p.readiness()
		if err == nil && (r.Ready || r.Generation == 0 || !strings.Contains(r.Reason, text)) {
			err = fmt.Errorf("%+v", r)
		}
		return err
	})
}

// TestReadyNeedsServers checks that a process without servers is not ready, even if its tables are complete, and that
// it gives the reason. The configurations contain only the app; the controller adds its servers through the admin API.
func TestReadyNeedsServers(t *testing.T) {
	stranger := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(stranger.Close)
	for name, c := range map[string]struct{ admin, reason string }{
		"another process at the address": {stranger.Listener.Addr().String(), "another process responds"},
		"nothing at the default address": {"", strings.TrimPrefix(nothingListens, "unix/")},
		"no admin API":                   {"off", "admin API"},
	} {
		t.Run(name, func(t *testing.T) {
			address, health := fixture.Address(t), fixture.Address(t)
			options := fmt.Sprintf(`"http":[%q],"https":[]%s`, address, followed(t.TempDir()))
			probes := fmt.Sprintf(`"http":{"servers":{"probes":{"listen":[%q],"automatic_https":{"disable":true},`+
				`"routes":[{"handle":[{"handler":"k8singress_health"}]}]}}},`, health)
			p := start(t, socket(t), `{`+probes+`"k8singress":{`+options+ofAdmin(c.admin)+`}}`)
			p.awaitReason(c.reason)
			probed := &controller{T: t, health: health}
			if err := probed.probe("/readyz", http.StatusServiceUnavailable); err != nil {
				t.Error(err)
			}
			// The address of the process itself fixes the problem.
			if err := p.reload(`{"k8singress":{`+options+ofAdmin(p.address)+`}}`, probes, ""); err != nil {
				t.Fatal(err)
			}
			p.awaitReady()
			p.eventually("the probe", func() error { return probed.probe("/readyz", http.StatusOK) })
			if status, _, err := probed.get(http.DefaultClient, "http://"+address+"/"); err != nil ||
				status != http.StatusNotFound {
				t.Errorf("its server answers %d, %v", status, err)
			}
		})
	}
}

func ofAdmin(address string) string {
	if address == "" {
		return ""
	}
	return fmt.Sprintf(`,"admin":%q`, address)
}

// pair is two processes on one machine: another Caddy with one site, and the controller.
type pair struct {
	*controller
	other, own *process
	before     string
}

// newPair starts the other Caddy with its admin API at address other. The controller's admin API will be at address
// own.
func newPair(t *testing.T, other, own string) *pair {
	t.Helper()
	p := &pair{newController(t), processAt(t, other), processAt(t, own), ""}
	file := filepath.Join(t.TempDir(), "Caddyfile")
	p.write(file, "{\nadmin "+other+"\n}\nhttp://"+fixture.Address(t)+" {\nrespond other\n}\n")
	p.runs(&controller{T: t}, nil, file)
	p.before = p.other.ask(http.MethodGet, "/config/", "").body
	return p
}

// runs starts `caddy run` with a configuration file.
func (p *pair) runs(c *controller, environment []string, file string) {
	p.Helper()
	program, err := os.Executable()
	if err != nil {
		p.Fatal(err)
	}
	c.spawn(environment, program, "run", "--config", file)
}

// isAlone checks that the configuration of the other Caddy has not changed.
func (p *pair) isAlone() {
	p.Helper()
	if now := p.other.ask(http.MethodGet, "/config/", "").body; now != p.before {
		p.Errorf("the other Caddy runs %s", now)
	}
}

// errors returns the number of error lines in the log that contain text.
func (p *pair) errors(text string) (n int) {
	p.Helper()
	file, err := os.Open(p.log)
	if err != nil {
		p.Fatal(err)
	}
	defer file.Close()
	log, err := io.ReadAll(file)
	if err != nil {
		p.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, `"level":"error"`) && strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// TestBesideAnotherCaddy checks that the controller never writes to another Caddy on the same machine. The other Caddy
// has its admin API at the default address if the test can use its own network namespace, and at another address
// otherwise.
func TestBesideAnotherCaddy(t *testing.T) {
	if ranInItsOwnNetwork(t) {
		return
	}
	usual, own := "localhost:2019", "127.0.0.1:12019"
	if !inItsOwnNetwork() {
		usual, own = fixture.Address(t), fixture.Address(t)
	}
	t.Run("JSON without the address of the admin API", func(t *testing.T) {
		p := newPair(t, usual, own)
		file := filepath.Join(t.TempDir(), "caddy.json")
		p.write(file,
			fmt.Sprintf(
				`{"admin":{"listen":%q,"config":{"persist":false}},"apps":{"k8singress":{"http":[%q],"https":[%q]%s}}}`,
				own, p.http, p.https, followed(t.TempDir())))
		p.runs(p.controller, []string{"CADDY_ADMIN=" + usual}, file)
		p.own.awaitReason("another process responds")
		p.isAlone()
		if n := p.errors("another process responds"); n != 1 {
			t.Errorf("%d errors in the log", n)
		}
	})
	t.Run("JSON, and CADDY_ADMIN", func(t *testing.T) {
		p := newPair(t, usual, own)
		file := filepath.Join(t.TempDir(), "caddy.json")
		p.write(file, fmt.Sprintf(`{"apps":{"k8singress":{"http":[%q],"https":[%q]%s}}}`, p.http, p.https,
			followed(t.TempDir())))
		p.runs(p.controller, []string{"CADDY_ADMIN=" + own}, file)
		p.own.awaitReady()
		p.isAlone()
	})
	t.Run("a Caddyfile, and CADDY_ADMIN", func(t *testing.T) {
		const server = "/config/apps/http/servers/k8singress_http"
		p := newPair(t, usual, own)
		file := filepath.Join(t.TempDir(), "Caddyfile")
		p.write(file, strings.Replace(p.caddyfile("manifests "+t.TempDir()), "admin off\n", "", 1))
		p.runs(p.controller, []string{"CADDY_ADMIN=" + own}, file)
		p.own.awaitReady()
		// The controller writes to its own admin API.
		if got := p.own.ask(http.MethodDelete, server, ""); got.status != http.StatusOK {
			t.Fatalf("taking the server out: %d %s", got.status, got.body)
		}
		p.becomes("the server is back", func() error {
			_, _, err := p.get(http.DefaultClient, "http://"+p.http+"/")
			return err
		})
		p.isAlone()
	})
}
