package k8singress_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// manifest is xcaddy.json: the fields of xcaddy's own Builder that the project uses.
type manifest struct {
	CaddyVersion string `json:"caddy_version"`
	Plugins      []struct {
		Module  string `json:"module_path"`
		Version string `json:"version"`
	} `json:"plugins"`
}

// goMod is what `go mod edit -json` prints of go.mod.
type goMod struct {
	Module  struct{ Path string }
	Require []struct{ Path, Version string }
}

const caddyModule = "github.com/caddyserver/caddy/v2"

// TestManifestIsGoMod checks that xcaddy builds with the same versions as go.
func TestManifestIsGoMod(t *testing.T) {
	m, mod := readManifest(t), readGoMod(t)
	required := map[string]string{mod.Module.Path: ""}
	for _, r := range mod.Require {
		required[r.Path] = r.Version
	}
	if m.CaddyVersion != required[caddyModule] {
		t.Errorf("xcaddy.json has Caddy %s, go.mod has %s", m.CaddyVersion, required[caddyModule])
	}
	if len(m.Plugins) == 0 || m.Plugins[0].Module != mod.Module.Path {
		t.Errorf("the first plugin of xcaddy.json is not %s", mod.Module.Path)
	}
	for _, p := range m.Plugins {
		if version, ok := required[p.Module]; !ok || p.Version != version {
			t.Errorf("xcaddy.json has %s %q, go.mod has %q", p.Module, p.Version, version)
		}
	}
}

func readManifest(t *testing.T) *manifest {
	t.Helper()
	data, err := os.ReadFile("xcaddy.json")
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	m := &manifest{}
	if err := decoder.Decode(m); err != nil {
		t.Fatalf("xcaddy.json: %v", err)
	}
	return m
}

func readGoMod(t *testing.T) *goMod {
	t.Helper()
	data, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json").Output()
	if err != nil {
		t.Fatalf("reading go.mod: %v", err)
	}
	mod := &goMod{}
	if err := json.Unmarshal(data, mod); err != nil {
		t.Fatal(err)
	}
	return mod
}
