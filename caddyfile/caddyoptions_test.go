package caddyfile

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestCaddyOptions compares the table with the global options that Caddy registers, and with the options that it parses
// in the block of servers.
func TestCaddyOptions(t *testing.T) {
	var named []string
	for _, o := range caddyOptions {
		named = append(named, o.Name)
		if strings.HasSuffix(o.Doc, ".") || o.Doc == "" {
			t.Errorf("the text of %s is %q: it must not be empty, and end without a full stop", o.Name, o.Doc)
		}
	}
	want := optionsOfCaddy(t)
	slices.Sort(want)
	slices.Sort(named)
	if !slices.Equal(named, want) {
		t.Errorf("the table has  %q\nCaddy has      %q", named, want)
	}
}

// optionsOfCaddy returns the names of Caddy's global options, which are private to Caddy, from its source.
func optionsOfCaddy(t *testing.T) (names []string) {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/caddyserver/caddy/v2").Output()
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(strings.TrimSpace(string(folder)), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		names = append(names, registered(file)...)
		if filepath.Base(path) == "serveroptions.go" {
			names = append(names, parsedForServers(file)...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// registered returns the names of the global options that a file registers.
func registered(file *ast.File) (names []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		name := ""
		switch f := call.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			name = f.Sel.Name
		}
		if literal, ok := call.Args[0].(*ast.BasicLit); ok && name == "RegisterGlobalOption" {
			names = append(names, unquoted(literal))
		}
		return true
	})
	return names
}

// parsedForServers returns "servers NAME" for each case of the first switch in Caddy's parser of the option servers,
// whose other switches are about nested blocks.
func parsedForServers(file *ast.File) (names []string) {
	var found *ast.SwitchStmt
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SwitchStmt); ok && found == nil {
			found = s
		}
		return found == nil
	})
	for _, statement := range found.Body.List {
		for _, value := range statement.(*ast.CaseClause).List {
			names = append(names, "servers "+unquoted(value.(*ast.BasicLit)))
		}
	}
	return names
}

func unquoted(literal *ast.BasicLit) string {
	text, _ := strconv.Unquote(literal.Value)
	return text
}

// TestOptionsForSites checks that an option for sites causes a warning only without sites, and that there is no warning
// about turning off what is always off.
func TestOptionsForSites(t *testing.T) {
	const chain = "\nk8singress {\nchain c {\nhandle {\nrespond a\nheader X b\n}\n}\n}"
	chainOf := func(config map[string]any) string {
		return string(document.Encode(structure.Branch(config, "apps", name)["chains"]))
	}
	withoutOrder, _ := adaptedWithWarnings(t, chain, "")
	for option, fate := range map[string]fate{
		"ocsp_stapling off": forSites, "storage_check off": forSites, "order respond before header": forSites,
		"persist_config off": alwaysOff, "servers {\n0rtt off\n}": alwaysOff,
	} {
		config, warnings := adaptedWithWarnings(t, option+chain, "")
		want := 0
		if fate == forSites {
			want = 1
		}
		if len(warnings) != want {
			t.Errorf("%s without sites: warnings %v, want %d", option, warnings, want)
		}
		if got := chainOf(config); got != chainOf(withoutOrder) {
			t.Errorf("%s: the chain is %s", option, got)
		}
		if _, warnings := adaptedWithWarnings(t, option+chain, "http://site.example:8080 {\n}\n"); len(warnings) > 0 {
			t.Errorf("%s with a site: warnings %v", option, warnings)
		}
	}
}

func TestCaddyPage(t *testing.T) {
	example, err := os.ReadFile("../examples/embedding_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, function, _ := strings.Cut(string(example), "\n// serveFolder ")
	function, _, _ = strings.Cut(function, "\n\n//")
	fixture.Printed(t, "../docs/caddy.md",
		map[string]any{"Rows": caddyOptions, "Embedding": "// serveFolder " + function}, *update)
}
