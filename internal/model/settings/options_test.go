package settings_test

import (
	"flag"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

var update = flag.Bool("update", false, "write the options of package k8singress")

const optionsHead = `// Code generated from internal/model/settings/settings.go by "make generate"; DO NOT EDIT.

package k8singress

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2"
)

// Options holds the options of the controller. In a Caddyfile, the options of the global option k8singress have the
// same names as the fields in JSON, with a few exceptions. The zero value of a field means its default. A reference to
// an object is a string of the form namespace/name.
type Options `

// plain finds the fields whose types package k8singress replaces, because it exports no internal types.
var plain = regexp.MustCompile(`(?m)^(\t\w+ +)(ir\.Name|ir\.ServicePort|Duration) `)

// TestOptions prints the options of package k8singress, in which users look for the JSON configuration, from the
// structs of this package.
func TestOptions(t *testing.T) {
	source, err := os.ReadFile("settings.go")
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	at := func(p token.Pos) int { return files.Position(p).Offset }
	text := optionsHead
	for _, declaration := range file.Decls {
		d, ok := declaration.(*ast.GenDecl)
		if !ok || d.Tok != token.TYPE {
			continue
		}
		spec := d.Specs[0].(*ast.TypeSpec)
		begin := d.Doc.Pos()
		if spec.Name.Name == "Config" {
			begin = spec.Type.Pos()
		}
		text += string(source[at(begin):at(d.End())]) + "\n\n"
	}
	text = plain.ReplaceAllStringFunc(text, func(field string) string {
		if before, ok := strings.CutSuffix(field, "Duration "); ok {
			return before + "caddy.Duration "
		}
		return plain.ReplaceAllString(field, "${1}string ")
	})
	formatted, err := format.Source([]byte(strings.TrimSpace(text) + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	fixture.Generated(t, "../../../k8singress/options.go", string(formatted), *update)
}
