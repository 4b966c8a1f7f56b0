package caddyfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/google/go-cmp/cmp"
	_ "github.com/mholt/caddy-l4/layer4"
	_ "github.com/mholt/caddy-l4/modules/l4close"
	_ "github.com/mholt/caddy-l4/modules/l4echo"
	_ "github.com/mholt/caddy-l4/modules/l4postgres"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata and docs")

const separator = "----------"

// TestAdapt checks files that contain a Caddyfile, a line of dashes, and the resulting JSON or error.
func TestAdapt(t *testing.T) {
	files, err := filepath.Glob("testdata/*.caddyfiletest")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".caddyfiletest"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input, want, _ := strings.Cut(string(data), separator+"\n")
			got := adapt(t, input)
			if strings.HasPrefix(got, "{") {
				isComplete(t, got)
			}
			if *update {
				write(t, file, input+separator+"\n"+got)
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// adapt returns the result of adapting a Caddyfile, including warnings and errors.
func adapt(t *testing.T, input string) string {
	t.Helper()
	result, warnings, err := caddyconfig.GetAdapter(adapterName).Adapt([]byte(input),
		map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var output bytes.Buffer
	for _, warning := range warnings {
		output.WriteString("warning: " + warning.String() + "\n")
	}
	if err := json.Indent(&output, result, "", "\t"); err != nil {
		t.Fatal(err)
	}
	return output.String() + "\n"
}

// isComplete checks that the configuration contains the whole structure. Otherwise the engine would add the missing
// part, which is a reload.
func isComplete(t *testing.T, adapted string) {
	t.Helper()
	var o outline
	var before, after map[string]any
	for _, into := range []any{&o, &before, &after} {
		if err := json.Unmarshal([]byte(adapted), into); err != nil {
			t.Fatal(err)
		}
	}
	var options settings.Config
	if err := json.Unmarshal(o.Apps[name], &options); err != nil {
		t.Fatal(err)
	}
	if err := structure.Merge(after, options); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the engine would change the configuration:\n%s", diff)
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestEveryOptionHasAFile checks that every option has a file of test data.
func TestEveryOptionHasAFile(t *testing.T) {
	for _, o := range options {
		file := "testdata/option-" + strings.ReplaceAll(o.Name, "_", "-") + ".caddyfiletest"
		data, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(data), "\t\t"+strings.ReplaceAll(o.Example, "\n", "\n\t\t")+"\n") {
			t.Errorf("%s does not have the example of the documentation, %q", file, o.Example)
		}
	}
}

func TestReference(t *testing.T) {
	fixture.Printed(t, "../docs/caddyfile.md", map[string]any{"Topics": described(t)}, *update)
	grammar := "# The options of the Caddyfile, printed from the table in caddyfile/options.go by `make generate`.\n"
	for i := range options {
		grammar += strings.TrimSpace(options[i].Name+" "+options[i].Values) + "\n"
	}
	fixture.Generated(t, "../charts/k8singress/files/options.txt", grammar, *update)
}

// TestSettingsOfBlocks checks that the settings in blocks have the names of their JSON fields, from which the schema of
// the chart is made.
func TestSettingsOfBlocks(t *testing.T) {
	for _, c := range []struct {
		of      reflect.Type
		without string
		names   []string
	}{
		{reflect.TypeFor[settings.NginxMetrics](), "off", slices.Sorted(maps.Keys(nginxMetricsSettings))},
		{reflect.TypeFor[settings.DefaultChain](), "chain", slices.Sorted(maps.Keys(selections))},
	} {
		var fields []string
		for _, field := range reflect.VisibleFields(c.of) {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != c.without {
				fields = append(fields, name)
			}
		}
		if slices.Sort(fields); !slices.Equal(fields, c.names) {
			t.Errorf("%s has the fields %q, and its block the settings %q", c.of, fields, c.names)
		}
	}
}

// TestForeignCaddyfileIsLeftAlone checks that a Caddyfile without our option gives exactly the same bytes as with
// Caddy's adapter.
func TestForeignCaddyfileIsLeftAlone(t *testing.T) {
	for _, input := range []string{
		"example.com {\n\treverse_proxy localhost:9000\n}\n",
		"example.com {\n\trespond \"k8singress <&>\"\n}\n",
	} {
		ours := caddyconfig.GetAdapter(adapterName).(adapter)
		got, _, err := ours.Adapt([]byte(input), nil)
		if err != nil {
			t.Fatal(err)
		}
		want, _, err := ours.next.Adapt([]byte(input), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestAdapterOfAnotherCaddy checks that a Caddyfile still loads if the adapter of this version of Caddy cannot be
// wrapped. The servers are then added as for a JSON configuration with only the app.
func TestAdapterOfAnotherCaddy(t *testing.T) {
	errAdapter = errors.New("not there")
	t.Cleanup(func() { errAdapter = nil })
	config, _, err := caddyconfig.GetAdapter(adapterName).(adapter).next.Adapt([]byte("{\n\tk8singress\n}\n"), nil)
	if err != nil || !bytes.Contains(config, []byte(`{"apps":{"k8singress":{`)) {
		t.Errorf("it becomes %s, error %v", config, err)
	}
}

// TestAddressesOfEmail checks that only a plain address is accepted, because certificate authorities accept neither a
// name nor angle brackets.
func TestAddressesOfEmail(t *testing.T) {
	for text, good := range map[string]bool{
		"ops@example.com": true, "ops+k8s@example.com": true, "ops@localhost": true,
		"ops": false, "@example.com": false, "ops@": false, "a b@example.com": false, "Ops <ops@example.com>": false,
		"<ops@example.com>": false,
	} {
		if err := emailAddress(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}
