package k8singress_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"
)

// ran is the result of a command.
type ran struct {
	status         int
	stdout, stderr string
}

// run runs `caddy k8singress` with arguments, as a user does.
func run(t *testing.T, arguments ...string) ran {
	t.Helper()
	return runCaddy(t, append([]string{"k8singress"}, arguments...)...)
}

// runCaddy runs the caddy command with arguments.
func runCaddy(t *testing.T, arguments ...string) ran {
	t.Helper()
	return runProgram(t, executable(t), arguments...)
}

// executable returns the path of the test binary, which TestMain also makes the caddy command.
func executable(t *testing.T) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// runProgram runs the test binary as the caddy command, under the path program. It kills the command if it does not
// exit.
func runProgram(t *testing.T, program string, arguments ...string) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env = append(os.Environ(), asCaddy+"=1", "HOME="+t.TempDir())
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return ran{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

var text = regexp.MustCompile(`(?m)^(.{9}\S+( \S+| line \d+)?): .+ \((\w+)\)$`)

// withoutMessages removes the messages from the output of lint, and keeps the parts that programs may rely on. Golden
// files check the messages.
func withoutMessages(verdicts string) string { return text.ReplaceAllString(verdicts, "$1: ($3)") }

func manifests(name string) string { return filepath.Join("testdata", "manifests", name) }

// endOfLint is the last line that lint prints on standard error, by folder.
var endOfLint = map[string]string{
	"errors":   "some objects have errors",
	"not-yaml": "some objects have errors",
	"empty": "empty has no manifests that the controller reads: it reads the kinds Ingress, IngressClass, Service, " +
		"EndpointSlice, ",
	"other-kinds": "other-kinds has no manifests that the controller reads: it reads the kinds Ingress, ",
	"no-ingress":  "no-ingress has no Ingress, so nothing is served. If a Caddyfile uses its Services, set --config to",
}

func TestLint(t *testing.T) {
	for folder, status := range map[string]int{
		"clean": 0, "warnings": 0, "not-served": 0, "no-ingress": 0, "ports": 0, "certificates": 0, "passthrough": 0,
		"errors": 1, "not-yaml": 1, "empty": 1, "other-kinds": 1,
	} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			got := run(t, "lint", "-f", manifests(folder))
			if got.status != status {
				t.Errorf("status %d, want %d", got.status, status)
			}
			want, err := os.ReadFile(filepath.Join("testdata", "lint", folder+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), withoutMessages(got.stdout)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if said := strings.Contains(got.stderr, endOfLint[folder]); !said || status == 0 &&
				strings.Contains(got.stderr, "Error") {
				t.Errorf("standard error: %s", got.stderr)
			}
		})
	}
}

// TestLintNamesTheFix checks one message as an example for all.
func TestLintNamesTheFix(t *testing.T) {
	const want = "error    File/team/bad.yaml line 10: is not YAML: found unexpected end of stream (InvalidManifest)\n"
	if got := run(t, "lint", "-f", manifests("not-yaml")); !strings.HasPrefix(got.stdout, want) {
		t.Errorf("want %s in:\n%s", want, got.stdout)
	}
}

// TestLintOfAFile checks that -f accepts a single file.
func TestLintOfAFile(t *testing.T) {
	got := run(t, "lint", "--filename", filepath.Join(manifests("clean"), "web.yaml"))
	if want := "ok       Ingress/shop/idle\nok       Ingress/shop/web\n"; got.status != 0 || got.stdout != want {
		t.Errorf("status %d: %s", got.status, got.stdout)
	}
}

func TestRender(t *testing.T) {
	folders, err := os.ReadDir(filepath.Join("testdata", "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	// The errors of render are the same as the errors of lint.
	for _, folder := range folders {
		if folder.Name() == "empty" || folder.Name() == "other-kinds" {
			continue
		}
		t.Run(folder.Name(), func(t *testing.T) {
			got := run(t, "render", "-f", manifests(folder.Name()))
			if got.status != 0 {
				t.Fatalf("status %d: %s", got.status, got.stderr)
			}
			validate(t, got.stdout)
			verdicts, err := os.ReadFile(filepath.Join("testdata", "lint", folder.Name()+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			var want strings.Builder
			for line := range strings.Lines(string(verdicts)) {
				if strings.HasPrefix(line, "error ") {
					want.WriteString(line)
				}
			}
			if diff := cmp.Diff(want.String(), withoutMessages(got.stderr)); diff != "" {
				t.Errorf("standard error, -want +got:\n%s", diff)
			}
		})
	}
}

// validate lets Caddy provision all modules of a configuration, including the modules of the live document.
func validate(t *testing.T, config string) {
	t.Helper()
	var c caddy.Config
	if err := caddy.StrictUnmarshalJSON([]byte(config), &c); err != nil {
		t.Fatal(err)
	}
	var app struct {
		Live struct {
			Hosts map[string]struct {
				Routes []struct{ Chain json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(c.AppsRaw["k8singress"], &app); err != nil {
		t.Fatal(err)
	}
	for _, host := range app.Live.Hosts {
		for _, route := range host.Routes {
			newRewriter(t).chain("/", route.Chain)
		}
	}
	if err := caddy.Validate(&c); err != nil {
		t.Errorf("Caddy refuses the document: %v", err)
	}
}

// TestExplain checks that filters are listed in the order in which requests pass them, regardless of the order of the
// annotations.
func TestExplain(t *testing.T) {
	got := run(t, "explain", "-f", filepath.Join("testdata", "explain", "manifests.yaml"))
	want, err := os.ReadFile(filepath.Join("testdata", "explain", "want.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.stdout); got.status != 0 || diff != "" {
		t.Errorf("status %d, %s, -want +got:\n%s", got.status, got.stderr, diff)
	}
	if got := run(t, "explain", "-f", manifests("empty")); got.status != 1 ||
		!strings.Contains(got.stderr, endOfLint["empty"]) {
		t.Errorf("of nothing: status %d, %s", got.status, got.stderr)
	}
}

// TestExplainDefaultChains checks that the default chains of the Caddyfile are listed for each backend of each path.
func TestExplainDefaultChains(t *testing.T) {
	file := filepath.Join("testdata", "explain", "manifests.yaml")
	got := run(t, "explain", "-f", file, "--config", filepath.Join("testdata", "config", "chains.Caddyfile"))
	backends := strings.Count(got.stdout, "  to default/")
	listed := strings.Count(got.stdout, "    default chains {\"names\":[\"waf\"]}\n")
	if got.status != 0 || backends == 0 || listed != backends {
		t.Errorf("status %d, %d of %d backends have the chain: %s%s", got.status, listed, backends, got.stdout,
			got.stderr)
	}
}

func TestRenderOfNothing(t *testing.T) {
	for _, folder := range []string{"empty", "other-kinds"} {
		got := run(t, "render", "-f", manifests(folder))
		if got.status != 1 || got.stdout != "" || !strings.Contains(got.stderr, endOfLint[folder]) {
			t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
		}
	}
}

// TestLintOfPorts checks that ConfigMaps with ports are validated with the options that name them.
func TestLintOfPorts(t *testing.T) {
	got := run(t, "lint", "-f", manifests("ports"), "--config", filepath.Join("testdata", "config", "ports.Caddyfile"))
	const want = "warning  ConfigMap/ingress-nginx/dns-udp: (ConfigMapNotReferenced)\nwarning  " +
		"ConfigMap/ingress-nginx/exposed: (ConfigMapNotReferenced)\nwarning  " +
		"ConfigMap/ingress-nginx/ingress-nginx-tcp: (ConfigMapNotReferenced)\nerror    " +
		"ConfigMap/ingress-nginx/tcp-services data[99999]: (InvalidEntry)\nwarning  " +
		"ConfigMap/ingress-nginx/udp-service: (ConfigMapNotFound)\nerror    Service/shop/db " +
		"metadata.annotations[k8singress.io/tcp-ports]: (PortNotAllowed)\n"
	if diff := cmp.Diff(want, withoutMessages(got.stdout)); got.status != 1 || diff != "" {
		t.Errorf("status %d, -want +got:\n%s", got.status, diff)
	}
}

// TestServicesOfLayer4 checks that the Services of handlers in the layer4 app are checked and listed, also without an
// Ingress.
func TestServicesOfLayer4(t *testing.T) {
	arguments := []string{"-f", manifests("no-ingress"), "--config", filepath.Join("testdata", "config",
		"layer4.Caddyfile")}
	for command, want := range map[string]struct {
		status int
		stdout string
	}{
		"lint": {1, "error    Service/default/gone: (ServiceNotFound)\nok       Service/default/web\n"},
		"explain": {0, "layer4 server srv0, which listens on 127.0.0.1:15432\n" +
			"  to default/gone: the Service default/gone does not exist\n" +
			"  if postgres\n    to default/web/80, 0 endpoints\n"},
	} {
		got := run(t, append([]string{command}, arguments...)...)
		if diff := cmp.Diff(want.stdout, withoutMessages(got.stdout)); got.status != want.status || diff != "" ||
			strings.Contains(got.stderr, "nothing is served") {
			t.Errorf("%s: status %d, %s, -want +got:\n%s", command, got.status, got.stderr, diff)
		}
	}
}

// TestLintOfOptionsForRun checks that lint accepts a Caddyfile whose options need options that caddy k8singress run
// sets.
func TestLintOfOptionsForRun(t *testing.T) {
	config := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(config, []byte("{\n\tk8singress {\n\t\tnginx_metrics\n\t}\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run(t, "lint", "-f", manifests("clean"), "--config", config); got.status != 0 {
		t.Errorf("lint exits with status %d: %s", got.status, got.stderr)
	}
	if got := runCaddy(t, "adapt", "--config", config, "--adapter", "caddyfile"); got.status != 1 ||
		!strings.Contains(got.stderr, "nginx_metrics needs the options health and health_metrics") {
		t.Errorf("adapt exits with status %d: %s", got.status, got.stderr)
	}
}

// TestLintOfUnnamedPorts checks that ports that no option opens are reported, together with the option that opens them.
func TestLintOfUnnamedPorts(t *testing.T) {
	for config, want := range map[string][]string{
		"Caddyfile": {
			"warning  ConfigMap/ingress-nginx/tcp-services: these ports are not open, because no option names this " +
				"ConfigMap: add tcp_services ingress-nginx/tcp-services to the k8singress block of the Caddyfile " +
				"(ConfigMapNotReferenced)\n",
			"ConfigMap/ingress-nginx/exposed: the entries look like TCP or UDP ports, and the ports are not open, " +
				"because no option names this ConfigMap: add tcp_services ingress-nginx/exposed or udp_services " +
				"ingress-nginx/exposed to the k8singress block",
			"Services may not open TCP ports here: the administrator can allow it with the option service_tcp_ports " +
				"(PortNotAllowed)\n",
		},
		"ports.Caddyfile": {
			"ConfigMap/ingress-nginx/ingress-nginx-tcp: these ports are not open, because the option tcp_services " +
				"names the ConfigMap ingress-nginx/tcp-services: move the entries to that ConfigMap, or write " +
				"tcp_services ingress-nginx/ingress-nginx-tcp instead (ConfigMapNotReferenced)\n",
		},
	} {
		got := run(t, "lint", "-f", manifests("ports"), "--config", filepath.Join("testdata", "config", config))
		for _, line := range want {
			if !strings.Contains(got.stdout, line) {
				t.Errorf("%s: want %q in:\n%s", config, line, got.stdout)
			}
		}
	}
}

// TestLintOfPassthrough checks that problems that depend on an option are reported only if the options are known, and
// that the message says how to pass the options.
func TestLintOfPassthrough(t *testing.T) {
	const field = "Ingress/default/vault metadata.annotations[nginx.ingress.kubernetes.io/ssl-passthrough]: "
	for config, want := range map[string]string{
		"": "info     " + field +
			"not checked: set --config to a Caddyfile with the option ssl_passthrough (NotChecked)\n",
		"ports.Caddyfile": "warning  " + field +
			"ssl-passthrough has no effect, because the administrator has not enabled it: the controller terminates " +
			"TLS. Set the option ssl_passthrough in the Caddyfile (InvalidAnnotation)\n",
		"passthrough.Caddyfile": "ok       Ingress/default/vault\n",
	} {
		arguments := []string{"lint", "-f", manifests("passthrough")}
		if config != "" {
			arguments = append(arguments, "--config", filepath.Join("testdata", "config", config))
		}
		got := run(t, arguments...)
		if got.status != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("%q: status %d, want %q in:\n%s", config, got.status, want, got.stdout)
		}
	}
}

func TestRenderKeepsStrings(t *testing.T) {
	got := run(t, "render", "-f", manifests("clean"))
	if want := `"/{env.HOME}/$1"`; !strings.Contains(got.stdout, want) {
		t.Errorf("there is no %s in:\n%s", want, got.stdout)
	}
}

func TestOptionsOfACommand(t *testing.T) {
	const listen = `"127.0.0.1:18080"`
	for _, name := range []string{"Caddyfile", "caddy.json"} {
		t.Run(name, func(t *testing.T) {
			config := filepath.Join("testdata", "config", name)
			if got := run(t, "render", "-f", manifests("clean"), "--config", config); got.status != 0 ||
				!strings.Contains(got.stdout, listen) {
				t.Errorf("status %d, %s\n%s", got.status, got.stderr, got.stdout)
			}
			// This configuration has another class, so no Ingress is left.
			if got := run(t, "lint", "-f", manifests("clean"), "-c", config); got.status != 0 ||
				strings.Contains(got.stdout, "ok ") {
				t.Errorf("status %d, %s\n%s", got.status, got.stderr, got.stdout)
			}
		})
	}
}

func TestMisuse(t *testing.T) {
	bad := func(name string) string { return filepath.Join("testdata", "config", name) }
	clean := manifests("clean")
	for name, c := range map[string]struct {
		arguments []string
		want      string
	}{
		"no folder":         {[]string{"lint"}, "-f DIR"},
		"empty folder name": {[]string{"render", "-f", ""}, "-f DIR"},
		"folder not there": {[]string{"lint", "-f", "testdata/nowhere"},
			"testdata/nowhere: no such file or directory"},
		"one more argument": {[]string{"lint", "-f", clean, "more"},
			`-f takes a single folder or file, but there is also "more"`},
		"folder without flag": {[]string{"lint", clean},
			"the folder must follow -f: caddy k8singress lint -f " + clean},
		"standard input": {[]string{"render", "-f", "-"}, "does not read standard input"},
		"misspelt":       {[]string{"lnt"}, `unknown command "lnt"`},
		"unknown flag":   {[]string{"lint", "-f", clean, "--strict"}, "unknown flag: --strict"},
		"config not there": {[]string{"render", "-f", clean, "-c", bad("nowhere")},
			"nowhere: no such file or directory"},
		"no option in config": {[]string{"render", "-f", clean, "-c", bad("other.json")},
			"other.json does not configure k8singress"},
		"no option in Caddyfile": {[]string{"lint", "-f", clean, "-c", bad("other.Caddyfile")},
			"other.Caddyfile does not configure k8singress"},
		"unknown option": {[]string{"render", "-f", clean, "-c", bad("unknown.json")},
			`unknown field "ingress_klass"`},
		"unknown subdirective": {[]string{"render", "-f", clean, "-c", bad("unknown.Caddyfile")},
			"unknown.Caddyfile:3"},
		"JSON of another kind": {[]string{"render", "-f", clean, "-c", bad("list.json")}, "decoding the configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, c.arguments...)
			if got.status != 1 || got.stdout != "" || !strings.Contains(got.stderr, c.want) {
				t.Errorf("status %d, output %q, want %q in:\n%s", got.status, got.stdout, c.want, got.stderr)
			}
		})
	}
}

func TestCommandAloneShowsHelp(t *testing.T) {
	got := run(t)
	if got.status != 0 || !strings.Contains(got.stdout, "render ") || !strings.Contains(got.stdout, "lint ") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
}
