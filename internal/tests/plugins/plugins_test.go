package plugins_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

var binary = flag.String("binary", "", "the path of a Caddy with the plugins of xcaddy.json; empty skips the tests")

// program returns the path of the Caddy with plugins.
func program(t *testing.T) string {
	t.Helper()
	if *binary == "" {
		t.Skip("there is no Caddy with plugins: run make plugins")
	}
	return *binary
}

// chains defines a chain for each handler, and two for rate limits: the zone "client" has the same key for all
// Ingresses, and the zone "ingress" has another key for each Ingress.
const chains = `
		chain shared {
			rate_limit {
				zone client {
					key {remote_host}
					events 1
					window 1h
				}
			}
		}
		chain apart {
			rate_limit {
				zone ingress {
					key {http.k8singress.namespace}/{http.k8singress.ingress}/{remote_host}
					events 1
					window 1h
				}
			}
		}
		chain replace {
			replace endpoint replaced
		}
		chain cached {
			cache {
				ttl 1h
			}
		}
`

// ingress is a Caddy with the plugins that serves a folder.
type ingress struct {
	*testing.T
	address string
	// asked is the number of requests that the endpoint got.
	asked atomic.Int64
}

// start runs Caddy. It serves an Ingress for each of hosts, which maps the first label of the host to a chain.
func start(t *testing.T, hosts map[string]string) *ingress {
	t.Helper()
	in := &ingress{T: t, address: fixture.Address(t)}
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		in.asked.Add(1)
		w.Header().Set("Cache-Control", "public, max-age=3600")
		fmt.Fprint(w, "endpoint")
	}))
	t.Cleanup(endpoint.Close)
	_, port, err := net.SplitHostPort(endpoint.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	manifests := fmt.Sprintf(service, port)
	for host, chain := range hosts {
		manifests += fmt.Sprintf(rule, host, chain)
	}
	in.file(folder, "manifests.yaml", manifests)
	config := in.file(t.TempDir(), "Caddyfile", fmt.Sprintf("{\n\tadmin %s\n\tk8singress {\n\t\tmanifests %s\n"+
		"\t\thttp %s\n\t\thttps off\n\t\treach_allow 127.0.0.0/8\n%s\t}\n}\n", fixture.Address(t), folder, in.address,
		chains))
	in.run("run", "--config", config, "--adapter", "caddyfile")
	fixture.Eventually(t, "the first Ingress", func() error {
		if status, body, err := in.ask("open"); err != nil || status != http.StatusOK {
			return fmt.Errorf("%d %q, error %w", status, body, err)
		}
		return nil
	})
	in.asked.Store(0)
	return in
}

const (
	service = `apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: %s}]
endpoints: [{addresses: [127.0.0.1]}]
`
	rule = `---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %[1]s, annotations: {k8singress.io/chains: %[2]q}}
spec:
  ingressClassName: nginx
  rules:
  - host: %[1]s.example
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
`
)

// file writes a file into a folder, and returns its path.
func (in *ingress) file(folder, name, content string) string {
	in.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		in.Fatal(err)
	}
	return path
}

// run starts the program, and stops it when the test ends. The log is printed if the test has failed.
func (in *ingress) run(arguments ...string) {
	in.Helper()
	ctx, stop := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, program(in.T), arguments...)
	command.Env = append(os.Environ(), "HOME="+in.TempDir(), "XDG_DATA_HOME=", "XDG_CONFIG_HOME=")
	var log strings.Builder
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		stop()
		in.Fatal(err)
	}
	in.Cleanup(func() {
		stop()
		_ = command.Wait()
		if in.Failed() {
			in.Logf("the log:\n%s", log.String())
		}
	})
}

// ask sends a request to a host, and returns the status and the body of its response.
func (in *ingress) ask(host string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(in.Context(), http.MethodGet, "http://"+in.address+"/", nil)
	if err != nil {
		return 0, "", err
	}
	request.Host = host + ".example"
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// expect checks the response of a host: the status, and the begin of the body. Errors of the controller end with the
// request ID.
func (in *ingress) expect(host string, status int, body string) {
	in.Helper()
	if got, text, err := in.ask(host); err != nil || got != status || !strings.HasPrefix(text, body) {
		in.Errorf("%s: %d %q, error %v, want %d %q", host, got, text, err, status, body)
	}
}

// TestHandlers checks that the handlers of plugins work in chains, and which requests a rate limit counts together, as
// docs/chains.md describes it.
func TestHandlers(t *testing.T) {
	program(t)
	in := start(t, map[string]string{"open": "", "one": "shared", "two": "shared", "three": "apart", "four": "apart",
		"replaced": "replace", "cached": "cached"})
	const ok, endpoint, limited = http.StatusOK, "endpoint", "429 Too Many Requests\nk8singress, request ID "
	in.expect("one", ok, endpoint)
	in.expect("two", http.StatusTooManyRequests, limited)
	in.expect("three", ok, endpoint)
	in.expect("four", ok, endpoint)
	in.expect("three", http.StatusTooManyRequests, limited)
	in.expect("replaced", ok, "replaced")
	before := in.asked.Load()
	in.expect("cached", ok, endpoint)
	in.expect("cached", ok, endpoint)
	if asked := in.asked.Load() - before; asked != 1 {
		t.Errorf("the endpoint got %d requests in spite of the cache", asked)
	}
}

// TestDNSProvider checks that the option issuer accepts the DNS provider of a plugin.
func TestDNSProvider(t *testing.T) {
	config := filepath.Join(t.TempDir(), "Caddyfile")
	text := "{\n\tk8singress {\n\t\tissuer acme {\n\t\t\tdns cloudflare {env.CF_API_TOKEN}\n\t\t}\n\t}\n}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := exec.CommandContext(t.Context(), program(t), "adapt", "--config", config).Output()
	const want = `"provider":{"api_token":"{env.CF_API_TOKEN}","name":"cloudflare"}`
	if err != nil || !strings.Contains(string(got), want) {
		t.Errorf("it becomes %s, error %v", got, err)
	}
}
