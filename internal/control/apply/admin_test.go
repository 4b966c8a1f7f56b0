package apply_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/standard"

	"github.com/k8singress/k8singress/internal/control/apply"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func init() { caddy.RegisterModule(new(router)) }

// router adds the route by which a client of the admin API recognizes this process.
type router struct{}

func (*router) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.apply_test", New: func() caddy.Module { return new(router) }}
}

func (*router) Routes() []caddy.AdminRoute { return []caddy.AdminRoute{apply.ProcessRoute()} }

// runCaddy starts Caddy in this process with only an admin API, and returns a client for it.
func runCaddy(t *testing.T) (*apply.Admin, string) {
	t.Helper()
	address := fixture.Address(t)
	listen(t, address, "")
	return client(t, address), address
}

// listen starts Caddy with an admin API at address. more is JSON for additional admin options.
func listen(t *testing.T, address, more string) {
	t.Helper()
	config := `{"admin":{"listen":"` + address + `","config":{"persist":false}` + more + `}}`
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
}

func client(t *testing.T, address string) *apply.Admin {
	t.Helper()
	admin, err := apply.NewAdmin(address)
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

// addServer changes a configuration as the controller does: it adds a server and keeps everything else.
func addServer(config map[string]any) error {
	config["apps"] = map[string]any{"http": map[string]any{"servers": map[string]any{
		"ours": map[string]any{"listen": []any{"127.0.0.1:0"}},
	}}}
	return nil
}

func TestChangePostsOnlyDifferences(t *testing.T) {
	admin, _ := runCaddy(t)
	for i, want := range []bool{true, false} {
		changed, err := admin.Change(t.Context(), addServer)
		if err != nil {
			t.Fatal(err)
		}
		if changed != want {
			t.Errorf("time %d: changed is %v", i, changed)
		}
	}
}

// TestEveryAddress checks that a client can use each format of admin addresses. Each case uses another address, because
// connections in the queue of a listener that Caddy has just closed are lost.
func TestEveryAddress(t *testing.T) {
	const enforced = `,"enforce_origin":true`
	for name, c := range map[string]struct{ listen, dial, more string }{
		"socket":                        {"unix/FOLDER/admin", "unix/FOLDER/admin", ""},
		"socket with a mode":            {"unix/FOLDER/admin|0600", "unix/FOLDER/admin|0600", ""},
		"all interfaces":                {":PORT", ":PORT", ""},
		"all interfaces, by one":        {":PORT", "tcp/127.0.0.1:PORT", ""},
		"all interfaces, origin wanted": {":PORT", ":PORT", enforced},
		"name":                          {"localhost:PORT", "localhost:PORT", ""},
		"name, by address":              {"localhost:PORT", "tcp/127.0.0.1:PORT", ""},
		"name, origin wanted":           {"localhost:PORT", "127.0.0.1:PORT", enforced},
		"placeholder":                   {"{env.ADMIN_ADDRESS}", "{env.ADMIN_ADDRESS}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			here := strings.NewReplacer("FOLDER", t.TempDir(), "PORT", fixture.Port(t))
			t.Setenv("ADMIN_ADDRESS", here.Replace("localhost:PORT"))
			listen(t, here.Replace(c.listen), c.more)
			changed, err := client(t, here.Replace(c.dial)).Change(t.Context(), addServer)
			if err != nil || !changed {
				t.Errorf("changed is %v, error %v", changed, err)
			}
		})
	}
}

func TestChangeIsRetriedAfterAConflict(t *testing.T) {
	admin, address := runCaddy(t)
	calls := 0
	changed, err := admin.Change(t.Context(), func(config map[string]any) error {
		if calls++; calls == 1 {
			post(t, address, `{"servers":{"theirs":{"listen":["127.0.0.1:0"]}}}`)
		}
		if calls == 2 && config["apps"] == nil {
			t.Error("the second attempt does not see the other change")
		}
		return addServer(config)
	})
	if err != nil || !changed || calls != 2 {
		t.Errorf("changed %v in %d attempts: %v", changed, calls, err)
	}
}

func TestRejectedChange(t *testing.T) {
	admin, address := runCaddy(t)
	_, err := admin.Change(t.Context(), func(config map[string]any) error {
		config["apps"] = map[string]any{"no_such_app": map[string]any{}}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "no_such_app") {
		t.Errorf("error %v", err)
	}
	if strings.Contains(get(t, address), "no_such_app") {
		t.Error("the refused configuration is in effect")
	}
}

func TestChangeEndsWithItsContext(t *testing.T) {
	admin, _ := runCaddy(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := admin.Change(ctx, addServer); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func post(t *testing.T, address, apps string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/config/",
		strings.NewReader(
			`{"admin":{"listen":"`+address+`","config":{"persist":false}},"apps":{"http":`+apps+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		message, _ := io.ReadAll(response.Body)
		t.Fatalf("%s %s", response.Status, message)
	}
}

// get reads the configuration from the admin API. It retries while Caddy replaces the listener.
func get(t *testing.T, address string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fixture.Patience)
	defer cancel()
	for {
		config, err := tryGet(ctx, address)
		if err == nil {
			return config
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

func tryGet(ctx context.Context, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/config/", nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	config, err := io.ReadAll(response.Body)
	return string(config), err
}
