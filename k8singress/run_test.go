package k8singress_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommandLineOfIngressNginx starts the controller with the flags of ingress-nginx. The Caddyfile has the options
// without a flag.
func TestCommandLineOfIngressNginx(t *testing.T) {
	c, o := newController(t), newOrigin(t)
	file := filepath.Join(t.TempDir(), "Caddyfile")
	c.write(file, "{\nadmin off\nk8singress {\nreach_allow 127.0.0.0/8\nhttp off\nmanifests "+c.manifests(o)+"\n}\n}\n")
	host, healthPort, _ := net.SplitHostPort(c.health)
	c.start(executable(t), "k8singress", "run", "--config", file, "--http-port="+portOf(c.http), "--https-port",
		portOf(c.https),
		"--healthz-port="+healthPort, "--healthz-host="+host, "--health-check-path=/alive", "--ingress-class=nginx",
		"--watch-ingress-without-class",
		"--time-buckets=1,2", "-v2")
	for url, want := range map[string]int{
		"http://" + c.http + "/":            http.StatusOK,
		"http://" + c.health + "/alive":     http.StatusOK,
		"http://" + c.health + "/metrics":   http.StatusOK,
		"http://" + c.health + "/healthz":   http.StatusNotFound,
		"http://" + c.health + "/something": http.StatusNotFound,
	} {
		if status, _, err := c.get(http.DefaultClient, url); err != nil || status != want {
			t.Errorf("%s: %d, %v, want %d", url, status, err, want)
		}
	}
}

// TestNameOfBinary checks that importing the module does not change the command line of a binary that has the name of
// one of ingress-nginx's programs. Only package ingressnginx does.
func TestNameOfBinary(t *testing.T) {
	for _, name := range []string{"nginx-ingress-controller", "wait-shutdown"} {
		link := filepath.Join(t.TempDir(), name)
		if err := os.Symlink(executable(t), link); err != nil {
			t.Fatal(err)
		}
		if got := runProgram(t, link, "list-modules"); !strings.Contains(got.stdout, "\nhttp.handlers.k8singress\n") {
			t.Errorf("%s: status %d, %s%s", name, got.status, got.stdout, got.stderr)
		}
	}
}

// TestListModules checks that the adapter of `caddy k8singress run` is not listed, because no configuration can use it.
func TestListModules(t *testing.T) {
	got := runCaddy(t, "list-modules")
	if !strings.Contains(got.stdout, "caddy.adapters.caddyfile\n") ||
		strings.Contains(got.stdout, "caddy.adapters.k8singress") {
		t.Errorf("status %d, %s%s", got.status, got.stdout, got.stderr)
	}
}

// TestRunErrors checks that an invalid command line ends at once with an error message.
func TestRunErrors(t *testing.T) {
	ports := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(ports, []byte("{\n\tk8singress {\n\t\tpublish_ports\n\t}\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		arguments []string
		says      string
	}{
		{[]string{"--confgmap=a/b"}, "there is no flag --confgmap; did you mean configmap?"},
		{[]string{"--configmap=a"}, `--configmap: "a" is not namespace/name`},
		{[]string{"--configmap=$(POD_NAMESPACE)/a"}, "no environment variable POD_NAMESPACE"},
		{[]string{"--enable-metrics", "false"}, `the argument "false" is not a flag: write each flag and its value as`},
		{[]string{"", "--http-port="}, "--http-port: the value is empty: write a port, or remove the flag"},
		{[]string{"--validating-webhook=:8443", "--validating-webhook-key=a"},
			"--validating-webhook-key: this flag needs --validating-webhook-certificate"},
		{[]string{"--http-port=80", "--https-port=80"}, "http and https cannot both listen on :80"},
		{[]string{"--publish-service=a/b", "--publish-status-address=192.0.2.1"},
			"--publish-status-address: this flag cannot be combined with --publish-service"},
		{[]string{"--annotations-prefix=example.com"}, "another prefix is not supported yet"},
		{[]string{"--config=/does/not/exist"}, "/does/not/exist"},
		{[]string{"--v=5", "--kubeconfig=/no/kubeconfig"}, "/no/kubeconfig"},
		{[]string{"--config=" + ports}, "publish_ports needs publish_service"},
		{[]string{"--config=" + ports, "--publish-service=a/b", "--kubeconfig=/no/kubeconfig"}, "/no/kubeconfig"},
	} {
		got := run(t, append([]string{"run"}, c.arguments...)...)
		if got.status == 0 || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%v: status %d, and it says %s", c.arguments, got.status, got.stderr)
		}
	}
	if got := run(t, "run", "--version"); got.status != 0 || !strings.HasPrefix(got.stdout, "k8singress ") ||
		!strings.Contains(got.stdout, ", with Caddy ") {
		t.Errorf("--version: status %d, %s%s", got.status, got.stdout, got.stderr)
	}
}
