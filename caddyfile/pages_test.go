package caddyfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"

	_ "github.com/k8singress/k8singress/examples/events"
)

// TestCaddyfilesOfPages adapts each block of the documentation that is marked as a Caddyfile and begins with global
// options.
func TestCaddyfilesOfPages(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(text), "\n```caddyfile\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			if !strings.HasPrefix(block, "{\n") {
				continue
			}
			_, warnings, err := caddyconfig.GetAdapter(adapterName).Adapt([]byte(block),
				map[string]any{"filename": "Caddyfile"})
			if err != nil || len(warnings) > 0 {
				t.Errorf("%s:\n%s\nerror %v, warnings %v", page, block, err, warnings)
			}
		}
	}
}
