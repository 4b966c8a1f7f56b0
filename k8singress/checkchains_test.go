package k8singress_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/certmagic"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/settings"
)

func init() {
	caddy.RegisterModule(new(lastManager))
	caddy.RegisterModule(new(counted))
}

// lastManager is the last certificate manager of a configuration. When it is provisioned, the tls app is complete.
type lastManager struct{ certmagic.Manager }

var tlsComplete atomic.Bool

func (*lastManager) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "tls.get_certificate.k8singress_test_last",
		New: func() caddy.Module { return new(lastManager) }}
}

func (*lastManager) Provision(caddy.Context) error {
	tlsComplete.Store(true)
	return nil
}

// counted is a handler that needs the tls and http apps, and counts how often it is provisioned and cleaned up.
type counted struct {
	NeedsTLS bool `json:"needs_tls,omitempty"`
}

var provisioned, cleanedUp atomic.Int32

func (*counted) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress_test_counted",
		New: func() caddy.Module { return new(counted) }}
}

func (c *counted) Provision(ctx caddy.Context) error {
	provisioned.Add(1)
	for _, app := range []string{"tls", "http"} {
		if _, err := ctx.App(app); err != nil {
			return err
		}
	}
	if c.NeedsTLS && !tlsComplete.Load() {
		return errors.New("the tls app is not complete")
	}
	return nil
}

func (*counted) Cleanup() error {
	cleanedUp.Add(1)
	return nil
}

func (*counted) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return next.ServeHTTP(w, r)
}

// withServers returns a configuration with the app and its servers. app is JSON.
func withServers(t testing.TB, app string) string {
	t.Helper()
	config := map[string]any{}
	if err := structure.Merge(config, settings.Config{
		HTTP: []string{"127.0.0.1:18080"}, HTTPS: []string{"127.0.0.1:18443"},
	}.WithDefaults()); err != nil {
		t.Fatal(err)
	}
	apps := structure.Branch(config, "apps")
	apps["k8singress"] = json.RawMessage(app)
	policy := structure.Branch(apps, "tls", "automation")["policies"].([]any)[0].(map[string]any)
	policy["get_certificate"] = append(policy["get_certificate"].([]any), map[string]any{"via": "k8singress_test_last"})
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// withSites returns a configuration with the app and a site, but without the servers of the app. app is JSON.
func withSites(_ testing.TB, app string) string {
	return `{"apps":{"http":{"servers":{"site":{"listen":["127.0.0.1:18081"],"routes":[]}}},"k8singress":` + app + `}}`
}

func alone(_ testing.TB, app string) string { return `{"apps":{"k8singress":` + app + `}}` }

// dynamicUpstreams are the apps of a configuration with a site whose upstreams are a Service.
const dynamicUpstreams = `"http":{"servers":{"site":{"listen":["127.0.0.1:18081"],"routes":[{"handle":[` +
	`{"handler":"reverse_proxy","dynamic_upstreams":{"source":"k8singress","service":"shop/web:80"}}]}]}}}`

// layer4Handler are the apps of a configuration with a TCP port that is forwarded to a Service.
const layer4Handler = `"layer4":{"servers":{"db":{"listen":["127.0.0.1:18082"],"routes":[{"handle":[` +
	`{"handler":"k8singress","service":"shop/db:5432"}]}]}}}`

// requesting returns a function that returns a configuration with the app, and with other apps that request it.
func requesting(others string) func(testing.TB, string) string {
	return func(_ testing.TB, app string) string { return `{"apps":{` + others + `,"k8singress":` + app + `}}` }
}

// forCertificates is a tls app that requests the app k8singress for certificates.
const forCertificates = `"tls":{"automation":{"policies":[{"get_certificate":[{"via":"k8singress"},` +
	`{"via":"k8singress_test_last"}]}]}}`

func validateApps(t testing.TB, config string) error {
	t.Helper()
	var c caddy.Config
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		t.Fatal(err)
	}
	tlsComplete.Store(false)
	return caddy.Validate(&c)
}

// kindsOfConfig are the configurations in which the apps are provisioned in different ways.
var kindsOfConfig = map[string]func(testing.TB, string) string{
	"with servers": withServers, "with sites": withSites, "without http": alone,
	"with dynamic upstreams":                  requesting(dynamicUpstreams),
	"with the layer4 handler":                 requesting(layer4Handler),
	"with certificates and dynamic upstreams": requesting(forCertificates + "," + dynamicUpstreams),
	"with certificates and a layer4 handler":  requesting(forCertificates + "," + layer4Handler),
}

// TestValidateRefusesChains checks that a configuration with a wrong chain is refused before it starts, whichever app
// Caddy provisions first, and that the error names the chain.
func TestValidateRefusesChains(t *testing.T) {
	const plain = `[{"handle":[{"handler":"authentication","providers":{"http_basic":{"accounts":[` +
		`{"username":"alice","password":"plain"}]}}}]}]`
	for name, test := range map[string]struct{ app, words string }{
		"handler": {`{"chains":{"staff":` + plain + `}}`, "the chain staff of the k8singress app"},
		"second chain": {`{"chains":{"a":[],"b":[{"match":[{"path_regexp":{"pattern":"["}}]}]}}`,
			"the chain b of the k8singress app"},
		"default chain": {`{"chains":{"a":[]},"default_chains":[{"chain":"b"}]}`, `there is no chain "b"`},
		"stream chain": {`{"stream_chains":{"db":{"routes":[{"handle":[{"handler":"nope"}]}]}}}`,
			"the stream chain db of the k8singress app"},
	} {
		for kind, config := range kindsOfConfig {
			t.Run(name+" "+kind, func(t *testing.T) {
				for range tries {
					err := validateApps(t, config(t, test.app))
					if err == nil || !strings.Contains(err.Error(), test.words) {
						t.Fatalf("the error is %v, want one with %q", err, test.words)
					}
				}
			})
		}
	}
}

// TestValidateProvisionsChainsOnce checks that a handler in a chain is provisioned once per configuration, when the
// apps that it needs are complete, and that it is cleaned up.
func TestValidateProvisionsChainsOnce(t *testing.T) {
	for kind, config := range kindsOfConfig {
		app := fmt.Sprintf(`{"chains":{"c":[{"handle":[{"handler":"k8singress_test_counted","needs_tls":%t}]}]}}`,
			strings.Contains(config(t, "{}"), "k8singress_test_last"))
		for range tries {
			provisioned.Store(0)
			cleanedUp.Store(0)
			if err := validateApps(t, config(t, app)); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			if p, c := provisioned.Load(), cleanedUp.Load(); p != 1 || c != 1 {
				t.Fatalf("%s: the handler was provisioned %d times and cleaned up %d times", kind, p, c)
			}
		}
	}
}

// TestLoadChecksChainsOnce checks that the start of a configuration does not check its chains again.
func TestLoadChecksChainsOnce(t *testing.T) {
	provisioned.Store(0)
	start(t, socket(t), `{"k8singress":{"http":[],"https":[],"chains":{"c":[{"handle":[`+
		`{"handler":"k8singress_test_counted"}]}]}}}`)
	if n := provisioned.Load(); n != 1 {
		t.Errorf("the handler was provisioned %d times", n)
	}
}

// TestCommandValidate checks what users of `caddy validate` see.
func TestCommandValidate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "caddy.json")
	config := withSites(t, `{"chains":{"staff":[{"handle":[{"handler":"nope"}]}]}}`)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "validate", "--config", file)
	command.Env = append(os.Environ(), asCaddy+"=1")
	output, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "the chain staff of the k8singress app") {
		t.Errorf("the error is %v, and the output %s", err, output)
	}
}
