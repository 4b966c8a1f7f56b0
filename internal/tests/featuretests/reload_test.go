package featuretests

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func init() { caddy.RegisterModule(new(failing)) }

// failing is an app that does not start.
type failing struct{}

func (*failing) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "featuretests_failing", New: func() caddy.Module { return new(failing) }}
}

func (*failing) Start() error { return errors.New("it never does") }
func (*failing) Stop() error  { return nil }

// refused loads a Caddyfile that Caddy rejects, because one of its apps does not start.
func (in *ingress) refused(text string) {
	in.Helper()
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		in.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(adapted, &config); err != nil {
		in.Fatal(err)
	}
	config["apps"].(map[string]any)["featuretests_failing"] = map[string]any{}
	if adapted, err = json.Marshal(config); err != nil {
		in.Fatal(err)
	}
	if err := caddy.Load(adapted, true); err == nil {
		in.Fatal("it is not refused")
	}
	in.admins.CloseIdleConnections()
}

// reloads returns how often the controller made Caddy reload its configuration.
func (in *ingress) reloads() string {
	in.Helper()
	var text []byte
	in.eventually("the metrics", func() error {
		response, err := in.admins.Get("http://" + in.admin + "/metrics")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err = io.ReadAll(response.Body)
		return err
	})
	const name = "\nk8singress_config_reloads_total "
	_, rest, ok := strings.Cut(string(text), name)
	if !ok {
		in.Fatalf("no %s in %s", name, text)
	}
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// neverReloads fails the test if the controller has made Caddy reload its configuration.
func (in *ingress) neverReloads() {
	in.Helper()
	if n := in.reloads(); n != "0" {
		in.Errorf("%s reloads", n)
	}
}

// Caddy starts apps in random order, so some of these start after ours.
const orders = 10

// TestRefusedReload checks that a configuration that Caddy rejects changes nothing, and causes no other load.
func TestRefusedReload(t *testing.T) {
	ip, port := backend(t, "one")
	in := start(t, class+service("one", port, ip)+rule("web", "shop.example", "Prefix", "/", "one"))
	other := fmt.Sprintf("{\nadmin %s\nk8singress {\nhttp %s\nhttps %s\nmanifests %s\ningress_class other\n}\n}\n",
		in.admin, fixture.Address(t), in.https, in.folder)
	for range orders {
		in.refused(other)
		in.expect("shop.example", "/", http.StatusOK, "one /")
	}
	// When this change has taken effect, the controller has processed all earlier ones.
	in.write("more.yaml", rule("more", "more.example", "Prefix", "/", "one"))
	in.becomes("more.example", "/", http.StatusOK, "one /")
	if !strings.Contains(string(in.document()), in.http) {
		t.Errorf("the refused options count: %s", in.document())
	}
	if n := in.reloads(); n != "0" {
		t.Errorf("%s more loads", n)
	}
}

// TestRefusedReloadOfTheSource checks the same with another folder: the admin API still describes the folder that is
// served.
func TestRefusedReloadOfTheSource(t *testing.T) {
	in := start(t, class)
	empty := t.TempDir()
	if err := os.WriteFile(empty+"/x.yaml", []byte(class), 0o600); err != nil {
		t.Fatal(err)
	}
	for range orders {
		in.refused(fmt.Sprintf("{\nadmin %s\nk8singress {\nhttp %s\nhttps %s\nmanifests %s\n}\n}\n", in.admin, in.http,
			in.https, empty))
		if !in.status().Ready {
			t.Fatal("the status is not that of what is served")
		}
		if status, text := in.put([]byte(`{"apps":{"k8singress":{"live":{}}}}`)); status != http.StatusConflict {
			t.Fatalf("PUT: %d %s", status, text)
		}
	}
}
