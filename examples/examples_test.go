// Package examples_test runs the examples in the same way as a user who tries them.
package examples_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/k8singress/k8singress"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// deadline is the maximum time until the first expected response.
const deadline = fixture.Patience

// TestQuickstart checks the requests that a new user sends after `make run`.
func TestQuickstart(t *testing.T) {
	ports := copyWithFreePorts(t, "quickstart")
	start(t, "quickstart")
	client := newClient(ports)
	for _, c := range []struct{ url, body string }{
		{"http://shop.localhost:8080/hello", "shop: GET /hello for shop.localhost\n"},
		{"http://shop.localhost:8080/cart/items", "cart: GET /items for shop.localhost\n"},
		{"https://shop.localhost:8443/", "shop: GET / for shop.localhost\n"},
		{"http://localhost:9100/", "cart: GET / for localhost\n"},
	} {
		t.Run(c.url, func(t *testing.T) { await(t, client, c.url, c.body) })
	}
	t.Run("a changed manifest", func(t *testing.T) {
		replaceInFile(t, "examples/quickstart/manifests/shop.yaml", "path: /cart(", "path: /basket(")
		await(t, client, "http://shop.localhost:8080/basket/items", "cart: GET /items for shop.localhost\n")
	})
}

// TestChains checks the example that docs/chains.md describes.
func TestChains(t *testing.T) {
	ports := copyWithFreePorts(t, "chains")
	start(t, "chains")
	client := newClient(ports)
	await(t, client, "http://alice:demo@office.localhost:8080/desk", "office: /desk\n")
	await(t, client, "http://office.localhost:8080/public/map", "office: /public/map\n")
	for _, url := range []string{"http://office.localhost:8080/desk", "http://alice:wrong@office.localhost:8080/desk"} {
		awaitStatus(t, client, url, http.StatusUnauthorized, "401 Unauthorized\nk8singress, request ID example\n")
	}
}

// copyWithFreePorts copies an example, replaces each of its ports with a free one, and changes the working directory
// so that paths resolve as with `make run` in the repository. It returns a map from old to new ports.
func copyWithFreePorts(t *testing.T, example string) map[string]string {
	t.Helper()
	ports := map[string]string{}
	var replacements []string
	for _, port := range []string{"2019", "5300", "5301", "5432", "5433", "8080", "8443", "9001", "9002",
		"9100", "9443"} {
		ports[port] = fixture.Port(t)
		replacements = append(replacements, port, ports[port])
	}
	replacer := strings.NewReplacer(replacements...)
	folder := t.TempDir()
	for _, pattern := range []string{"Caddyfile", "manifests/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(example, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, error %v", pattern, len(files), err)
		}
		for _, name := range files {
			text := read(t, name)
			if filepath.Base(name) != "tls.yaml" {
				text = replacer.Replace(text)
			}
			write(t, filepath.Join(folder, "examples", name), text)
		}
	}
	t.Chdir(folder)
	return ports
}

// start runs the example with a Caddy in this process.
func start(t *testing.T, example string) {
	t.Helper()
	startFile(t, "examples/"+example+"/Caddyfile")
}

// startFile runs a Caddyfile with a Caddy in this process.
func startFile(t *testing.T, path string) {
	t.Helper()
	// Caddy keeps its files below these.
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	loadFile(t, path)
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// loadFile makes Caddy load a Caddyfile.
func loadFile(t *testing.T, path string) {
	t.Helper()
	config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(read(t, path)),
		map[string]any{"filename": path})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("adapting: error %v, warnings %v", err, warnings)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
}

// newClient returns a client that resolves every host to this machine, and maps the example's ports to the ones in
// use.
func newClient(ports map[string]string) *http.Client {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", ports[port]))
	}
	return &http.Client{Timeout: deadline, Transport: &http.Transport{
		DialContext:     dial,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // curl -k
	}}
}

// await sends requests until the status is 200 and the body is the wanted one.
func await(t *testing.T, client *http.Client, url, want string) {
	t.Helper()
	awaitStatus(t, client, url, http.StatusOK, want)
}

// awaitStatus sends requests until the response is the wanted one. Each request uses a new connection, because a
// connection that was accepted before the Ingresses were known stays with the controller.
func awaitStatus(t *testing.T, client *http.Client, url string, status int, body string) {
	t.Helper()
	fixture.Eventually(t, url, func() error {
		gotStatus, got, err := get(t.Context(), client, url)
		if err == nil && (gotStatus != status || got != body) {
			err = fmt.Errorf("the answer is %d %q, want %d %q", gotStatus, got, status, body)
		}
		if err != nil {
			client.CloseIdleConnections()
		}
		return err
	})
}

// get sends a GET request. Its request ID, which the bodies of errors repeat, is always the same.
func get(ctx context.Context, client *http.Client, url string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("X-Request-Id", "example")
	return ask(client, request)
}

func ask(client *http.Client, request *http.Request) (status int, body string, err error) {
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

func replaceInFile(t *testing.T, name, old, replacement string) {
	t.Helper()
	text := read(t, name)
	if !strings.Contains(text, old) {
		t.Fatalf("%s has no %q", name, old)
	}
	write(t, name, strings.ReplaceAll(text, old, replacement))
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
