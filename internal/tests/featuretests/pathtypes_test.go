package featuretests

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/translate/lint"
)

// TestStrictPathTypes checks that lint warns about paths that ingress-nginx rejects, unless strict-validate-path-type
// disables the check.
func TestStrictPathTypes(t *testing.T) {
	objects := class + service("web", "80", "192.0.2.1") + rule("plain", "a.example", "Prefix", "/a-b_c.d/E9", "web") +
		rule("prefix", "b.example", "Prefix", "/api/v[0-9]+", "web") + rule("exact", "c.example", "Exact",
		"/a b", "web") +
		rule("own", "d.example", "ImplementationSpecific", "/api/(.*)", "web")
	for key, want := range map[string][]string{
		`strict-validate-path-type: "true"`:  {"Ingress/default/exact", "Ingress/default/prefix"},
		`strict-validate-path-type: "false"`: nil,
	} {
		folder := t.TempDir()
		file := filepath.Join(folder, "manifests.yaml")
		if err := os.WriteFile(file, []byte(objects+global(key)), 0o600); err != nil {
			t.Fatal(err)
		}
		options := settings.Config{}.WithDefaults()
		options.ConfigMap = ir.Name{Namespace: "default", Name: "global"}
		result, err := engine.RunOffline(folder, options)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range lint.PathTypes(result.Objects, &options, result.Report) {
			got = append(got, v.Object.String())
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: a warning for %v, want %v", key, got, want)
		}
	}
}
