package filter

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

var update = flag.Bool("update", false, "write the Caddy modules of the filters")

const modulesHead = `// Code generated from internal/http/filter and internal/model/ir by "make generate"; DO NOT EDIT.

package k8singress

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)
`

// moduleText is the code of one module: its comment, type, settings, handler name and the name of the settings' type.
const moduleText = `
%[1]s//
// It only works behind the k8singress handler.
type %[2]s struct {
	%[3]s

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*%[2]s) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.%[4]s",
		New: func() caddy.Module { return new(%[2]s) },
	}
}

// Provision creates the filter.
func (m *%[2]s) Provision(ctx caddy.Context) error { return m.provision(ctx, m.%[5]s) }
`

// TestModules prints one Caddy module for each filter, so that each of them has its own name, text and settings in the
// documentation of Caddy's modules. The texts are the comments of package ir.
func TestModules(t *testing.T) {
	comments := commentsOfTypes(t)
	sorted := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.create == nil })
	slices.SortFunc(sorted, func(a, b row) int { return cmp.Compare(a.model.Name(), b.model.Name()) })
	var register, modules, checks strings.Builder
	for _, r := range sorted {
		name := r.model.Name()
		comment := comments[name]
		if !strings.HasPrefix(comment, "// "+name+" ") {
			t.Errorf("the comment of %s does not begin with its name", name)
		}
		fmt.Fprintf(&register, "caddy.RegisterModule(new(%s))\n", name)
		fmt.Fprintf(&modules, moduleText, comment, name, r.settings, r.name, r.settings.Name())
		fmt.Fprintf(&checks, "_ caddy.Provisioner = (*%s)(nil)\n", name)
		fmt.Fprintf(&checks, "_ caddyhttp.MiddlewareHandler = (*%s)(nil)\n", name)
	}
	text := modulesHead + "\nfunc init() {\n" + register.String() + "}\n" + modules.String() +
		"\nvar (\n" + checks.String() + ")\n"
	formatted, err := format.Source([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	fixture.Generated(t, "../../../k8singress/filtermodules.go", string(formatted), *update)
}

// commentsOfTypes returns the comments on the types of package ir, with slashes, by the names of the types.
func commentsOfTypes(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../../model/ir/*.go")
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			d, ok := declaration.(*ast.GenDecl)
			if !ok || d.Tok != token.TYPE || d.Doc == nil {
				continue
			}
			var text strings.Builder
			for _, line := range d.Doc.List {
				text.WriteString(line.Text + "\n")
			}
			comments[d.Specs[0].(*ast.TypeSpec).Name.Name] = text.String()
		}
	}
	return comments
}
