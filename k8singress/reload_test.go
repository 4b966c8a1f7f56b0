package k8singress_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

func init() { caddy.RegisterModule(new(failing)) }

// failing is an app that fails to start.
type failing struct{}

func (*failing) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "k8singress_test_failing", New: func() caddy.Module { return new(failing) }}
}

func (*failing) Start() error { return errors.New("it never does") }
func (*failing) Stop() error  { return nil }

// failures are the ways in which Caddy rejects a configuration after it has provisioned all of it.
var failures = map[string]struct{ apps, admin string }{
	// The apps start in any order. Our app is stopped if it was started before the failing one.
	"another app does not start": {apps: `"k8singress_test_failing":{},`},
	// All apps have started then, and none of them is stopped.
	"setting up fails": {admin: `,"load":{"module":"none"}`},
}

// tries is the number of attempts. It is large enough to cover both orders of two apps.
const tries = 20

// reload loads a configuration with another app of ours, additional apps, and additional settings of the admin API.
func (p *process) reload(app, moreApps, moreConfig string) error {
	p.Helper()
	apps := "{" + moreApps + strings.TrimPrefix(app, "{")
	config := fmt.Sprintf(`{"admin":{"listen":%q,"config":{"persist":false%s}},"apps":%s}`, p.address, moreConfig, apps)
	return caddy.Load([]byte(config), true)
}

// class returns the option that distinguishes the configurations of a test.
func (p *process) class() any {
	p.Helper()
	var whole struct {
		Apps struct{ K8singress map[string]any }
	}
	p.decode("config", &whole)
	return whole.Apps.K8singress["ingress_class"]
}

// TestFailedReload checks that a rejected configuration leaves everything as in the configuration before.
func TestFailedReload(t *testing.T) {
	folder := followed(t.TempDir())
	for name, f := range failures {
		for what, next := range map[string]string{"other options": folder, "another source": followed(t.TempDir()),
			"no source": ""} {
			t.Run(name+", "+what, func(t *testing.T) {
				p := start(t, socket(t), app(folder+`,"ingress_class":"first"`))
				p.awaitReady()
				for range tries {
					if err := p.reload(app(next+`,"ingress_class":"refused"`), f.apps, f.admin); err == nil {
						t.Fatal("it does not fail")
					}
					p.awaitReady()
					if class := p.class(); class != "first" {
						t.Fatalf("the class is %v", class)
					}
					if got := p.ask(http.MethodPut, "config", nothing); got.status != http.StatusConflict {
						t.Fatalf("PUT: %d %s", got.status, got.body)
					}
				}
				if err := p.reload(app(next+`,"ingress_class":"second"`), "", ""); err != nil {
					t.Fatal(err)
				}
				if class := p.class(); class != "second" {
					t.Errorf("after a configuration that works, the class is %v", class)
				}
			})
		}
	}
}

// TestFailedLoad checks that after a first configuration was rejected, the admin API behaves as if there had been none.
func TestFailedLoad(t *testing.T) {
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			p := start(t, socket(t), `{}`)
			for range tries {
				if err := p.reload(app(""), f.apps, f.admin); err == nil {
					t.Fatal("it does not fail")
				}
				if got := p.ask(http.MethodGet, "status", ""); got.status != http.StatusNotFound {
					t.Fatalf("%d %s", got.status, got.body)
				}
			}
		})
	}
}

// TestReloadWithout checks that the next configuration may lack our app.
func TestReloadWithout(t *testing.T) {
	p := start(t, socket(t), app(""))
	if err := p.reload(`{"pki":{}}`, "", ""); err != nil {
		t.Fatal(err)
	}
	if got := p.ask(http.MethodGet, "status", ""); got.status != http.StatusNotFound {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func followed(folder string) string {
	return fmt.Sprintf(`,"source":{"manifests":{"dir":%q}}`, filepath.ToSlash(folder))
}

// readiness is the part of the controller's status about readiness.
type readiness struct {
	Ready      bool
	Reason     string
	Generation int
}

// readiness returns an error while the configuration with the controller is still being loaded.
func (p *process) readiness() (r readiness, err error) {
	p.Helper()
	got := p.ask(http.MethodGet, "status", "")
	if got.status != http.StatusOK {
		return r, fmt.Errorf("%d %s", got.status, got.body)
	}
	return r, json.Unmarshal([]byte(got.body), &r)
}

func (p *process) awaitReady() {
	p.Helper()
	p.eventually("ready", func() error {
		r, err := p.readiness()
		// The verdicts on the objects follow a moment later.
		if err == nil && (!r.Ready || r.Generation == 0) {
			err = fmt.Errorf("it is not: %+v", r)
		}
		return err
	})
}
