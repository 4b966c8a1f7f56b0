package k8singress

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/k8singress/k8singress/internal/control/flags"
	"github.com/k8singress/k8singress/internal/control/structure"
)

// TestFlagsAndServers checks that Caddy's global options apply to the servers of the command line of ingress-nginx,
// with and without the global option k8singress in the Caddyfile.
func TestFlagsAndServers(t *testing.T) {
	const servers = "servers :18080 {\nmax_header_size 2KB\n}\nservers :9999 {\nprotocols h1\n}\n"
	for _, text := range []string{"{\n" + servers + "}\n", "{\n" + servers + "k8singress\n}\n"} {
		f := &flagged{given: flags.Given{"http-port": {"18080"}, "https-port": {"18443"}, "v": {"2"}}}
		adapted, warnings, err := f.Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
		if err != nil {
			t.Fatal(err)
		}
		var config map[string]any
		if err := json.Unmarshal(adapted, &config); err != nil {
			t.Fatal(err)
		}
		all := structure.Branch(config, "apps", "http", "servers")
		for name, want := range map[string]float64{structure.HTTPServer: 2000, structure.HTTPSServer: 32 << 10} {
			if got := structure.Branch(all, name)["max_header_bytes"]; got != want {
				t.Errorf("max_header_bytes of %s is %v, want %v", name, got, want)
			}
		}
		warned := func(text string) bool {
			return slices.ContainsFunc(warnings, func(w caddyconfig.Warning) bool {
				return strings.Contains(w.Message, text)
			})
		}
		if !warned("no server listens on :9999") || warned("no server listens on :18080") {
			t.Errorf("the warnings are %v", warnings)
		}
	}
}

// TestTypesOfFlags checks that the help of each command shows the type of each flag, and no word of its description as
// a type. Package pflag takes a text between backticks as the type.
func TestTypesOfFlags(t *testing.T) {
	parent := &cobra.Command{Use: "k8singress"}
	commands(parent)
	known := []string{"", "string", "number", "duration", "list", "namespace/name"}
	shown := map[string]bool{}
	for _, cmd := range parent.Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			name, usage := pflag.UnquoteUsage(f)
			if shown[name] = true; !slices.Contains(known, name) || (name == "") != (f.Value.Type() == "bool") {
				t.Errorf("%s --%s has the type %q", cmd.Name(), f.Name, name)
			}
			if strings.ContainsAny(usage, "`") || strings.Contains(usage, "](") {
				t.Errorf("the description of %s --%s is not plain text: %s", cmd.Name(), f.Name, usage)
			}
		})
	}
	for _, name := range known {
		if !shown[name] {
			t.Errorf("no flag has the type %q", name)
		}
	}
}
