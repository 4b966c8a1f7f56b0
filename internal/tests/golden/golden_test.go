package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	_ "github.com/k8singress/k8singress"
	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/kube/files"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

var update = flag.Bool("update", false, "rewrite the expected files")

// outcome is the result of translating a folder of manifests, in the format of the expected files.
type outcome struct{ config, report []byte }

// translate runs the whole pipeline on manifests.
func translate(t *testing.T, manifests []byte, o settings.Config) outcome {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "in.yaml"), manifests, 0o600); err != nil {
		t.Fatal(err)
	}
	s, verdicts, err := files.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	unchanged := remember(s)
	result := engine.Carry(s, verdicts, o.WithDefaults())
	unchanged(t)
	var config bytes.Buffer
	encoder := json.NewEncoder(&config)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	if err := encoder.Encode(engine.Compose(result.Settings, result.Document)); err != nil {
		t.Fatal(err)
	}
	type verdict struct {
		Object   string           `json:"object"`
		Accepted bool             `json:"accepted"`
		Parents  []report.Parent  `json:"parents,omitempty"`
		Problems []report.Problem `json:"problems,omitempty"`
	}
	all := []verdict{}
	for _, v := range result.Report.Verdicts {
		all = append(all, verdict{v.Object.String(), v.Accepted(), v.Stated(), v.Problems})
	}
	verdictsYAML, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return outcome{config.Bytes(), verdictsYAML}
}

// remember copies all objects. The returned function fails the test if an object has changed since: objects belong to
// the cache of the cluster, and the next translation uses them.
func remember(s *snapshot.Snapshot) (unchanged func(testing.TB)) {
	before := map[kinds.Object]any{}
	for _, kind := range kinds.All {
		for o := range s.OfKind(kind.Name).All() {
			before[o] = o.DeepCopyObject()
		}
	}
	return func(t testing.TB) {
		t.Helper()
		for o, copied := range before {
			if diff := cmp.Diff(copied, any(o)); diff != "" {
				t.Errorf("%s was changed (-before +after):\n%s", snapshot.RefOf(o), diff)
			}
		}
	}
}

func TestGolden(t *testing.T) {
	cases, err := filepath.Glob("testdata/*/in.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range cases {
		folder := filepath.Dir(file)
		t.Run(filepath.Base(folder), func(t *testing.T) { runCase(t, folder) })
	}
}

func runCase(t *testing.T, folder string) {
	manifests := read(t, filepath.Join(folder, "in.yaml"))
	var o settings.Config
	if options, err := os.ReadFile(filepath.Join(folder, "options.json")); err == nil {
		if err := caddy.StrictUnmarshalJSON(options, &o); err != nil {
			t.Fatal(err)
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	got := translate(t, manifests, o)
	compare(t, filepath.Join(folder, "config.json"), got.config)
	compare(t, filepath.Join(folder, "report.yaml"), got.report)

	documents := strings.Split("\n"+string(manifests), "\n---")
	slices.Reverse(documents)
	if again := translate(t, []byte(strings.Join(documents, "\n---\n")), o); !bytes.Equal(again.config, got.config) {
		t.Errorf("another order of the documents gives another configuration:\n%s",
			cmp.Diff(string(got.config), string(again.config)))
	}
	checkIDs(t, got.config)
	provision(t, got.config)
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(read(t, file)), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// checkIDs checks the values of "@id", by which Caddy finds parts of a configuration in a path.
func checkIDs(t *testing.T, config []byte) {
	t.Helper()
	var tree any
	if err := json.Unmarshal(config, &tree); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if id, ok := v["@id"].(string); ok {
				if seen[id] || strings.Contains(id, "/") {
					t.Errorf("@id %q is there twice, or has a slash", id)
				}
				seen[id] = true
			}
			for _, child := range v {
				walk(child)
			}
		case []any:
			for _, child := range v {
				walk(child)
			}
		}
	}
	walk(tree)
}

// provision makes Caddy provision the modules of the whole document, without listening.
func provision(t *testing.T, config []byte) {
	t.Helper()
	var c caddy.Config
	if err := json.Unmarshal(config, &c); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(&c); err != nil {
		t.Errorf("Caddy refuses the document: %v", err)
	}
}
