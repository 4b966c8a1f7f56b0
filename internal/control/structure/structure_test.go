package structure_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/settings"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// TestHasDefaultHead checks that the limit of our servers is the default, and that other limits are settings of the
// administrator.
func TestHasDefaultHead(t *testing.T) {
	servers := structure.Branch(structure.Structure(settings.Config{}), "apps", "http", "servers")
	limit, ok := structure.Branch(servers, structure.HTTPSServer)["max_header_bytes"].(float64)
	if !ok || !structure.HasDefaultHead(structure.HTTPSServer, int(limit)) {
		t.Errorf("the limit %v of our server is not the default", limit)
	}
	if structure.HasDefaultHead(structure.HTTPServer, 2000) || structure.HasDefaultHead("srv0", int(limit)) {
		t.Error("a limit of the administrator is the default")
	}
}

// TestMerge checks the result of merging the structure into each configuration in testdata against a golden file.
func TestMerge(t *testing.T) {
	files, err := filepath.Glob("testdata/*.in.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".in.json"), func(t *testing.T) {
			config, options := read(t, file)
			if err := structure.Merge(config, options); err != nil {
				golden(t, file, "error: "+err.Error()+"\n")
				return
			}
			golden(t, file, encode(t, config))
			once := encode(t, config)
			if err := structure.Merge(config, options); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(once, encode(t, config)); diff != "" {
				t.Errorf("merging again changes (-once +twice):\n%s", diff)
			}
			decodes(t, config)
		})
	}
}

func read(t *testing.T, file string) (config map[string]any, options settings.Config) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	input := struct {
		Config  *map[string]any
		Options *settings.Config
	}{&config, &options}
	if err := json.Unmarshal(data, &input); err != nil {
		t.Fatal(err)
	}
	return config, options
}

func encode(t *testing.T, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}

func golden(t *testing.T, input, got string) {
	t.Helper()
	file := strings.TrimSuffix(input, ".in.json") + ".out"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// decodes checks that Caddy's strict decoding accepts a configuration, so that it has no unknown fields.
func decodes(t *testing.T, config map[string]any) {
	t.Helper()
	var whole caddy.Config
	if err := caddy.StrictUnmarshalJSON([]byte(encode(t, config)), &whole); err != nil {
		t.Fatal(err)
	}
	for name, into := range map[string]any{"http": new(caddyhttp.App), "tls": new(caddytls.TLS)} {
		if err := caddy.StrictUnmarshalJSON(whole.AppsRaw[name], into); err != nil {
			t.Errorf("apps.%s: %v", name, err)
		}
	}
}

// TestProtocols checks that the option http3 off removes HTTP/3 from the protocols of the configuration, and does not
// add others.
func TestProtocols(t *testing.T) {
	for configured, want := range map[string]string{
		`["h1"]`: `["h1"]`, `["h1", "h3"]`: `["h1"]`, `["h1", "h2", "h3"]`: `["h1", "h2"]`, `["h3"]`: `["h1", "h2"]`,
		`null`: `["h1", "h2"]`,
	} {
		text := `{"apps": {"http": {"servers": {"` + structure.HTTPSServer + `": {"protocols": ` + configured + `}}}}}`
		var config map[string]any
		if err := json.Unmarshal([]byte(text), &config); err != nil {
			t.Fatal(err)
		}
		if err := structure.Merge(config, settings.Config{HTTP3: settings.HTTP3Off}); err != nil {
			t.Fatal(err)
		}
		got := structure.Branch(config, "apps", "http", "servers", structure.HTTPSServer)["protocols"]
		if diff := cmp.Diff(strings.ReplaceAll(want, " ", ""), compact(t, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", configured, diff)
		}
	}
}

func compact(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestStructureEqualsMerge checks that Merge turns a configuration that contains only our app into the
// configuration that Structure returns.
func TestStructureEqualsMerge(t *testing.T) {
	options := settings.Config{HTTP: []string{":8080"}, HTTPS: []string{}, Email: "ops@example.com"}
	whole := structure.Structure(options)
	merged := map[string]any{"apps": map[string]any{"k8singress": structure.Tree(options)}}
	if err := structure.Merge(merged, options); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, merged); diff != "" {
		t.Errorf("-Structure +Merge:\n%s", diff)
	}
}
