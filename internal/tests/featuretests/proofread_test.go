package featuretests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// sources has the declarations of this package by name, and the methods by the name of their type.
type sources struct {
	declared map[string][]ast.Node
}

// readTests reads all test files, including those for other operating systems.
func readTests(t *testing.T) *sources {
	t.Helper()
	s := &sources{map[string][]ast.Node{}}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			s.declare(d)
		}
	}
	return s
}

func (s *sources) declare(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		s.declared[d.Name.Name] = append(s.declared[d.Name.Name], d)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if values, ok := spec.(*ast.ValueSpec); ok {
				for _, name := range values.Names {
					s.declared[name.Name] = append(s.declared[name.Name], values)
				}
			}
		}
	}
}

// texts returns the string literals in a declaration, and in the declarations that it refers to.
func (s *sources) texts(t *testing.T, name string) (all []string) {
	t.Helper()
	seen := map[string]bool{name: true}
	for _, declared := range s.declared[name] {
		texts, names := mentioned(t, declared)
		all = append(all, texts...)
		for _, other := range names {
			if seen[other] {
				continue
			}
			seen[other] = true
			for _, declared := range s.declared[other] {
				texts, _ := mentioned(t, declared)
				all = append(all, texts...)
			}
		}
	}
	return all
}

// mentioned returns the string literals in a declaration, and the names in it. If a string is a path of testdata, it
// also returns the contents of the files there.
func mentioned(t *testing.T, declared ast.Node) (texts, names []string) {
	t.Helper()
	ast.Inspect(declared, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				texts = append(texts, text, testdata(t, text))
			}
		case *ast.Ident:
			names = append(names, n.Name)
		}
		return true
	})
	return texts, names
}

// testdata returns the contents of the files at a path, or nothing if the path is not in testdata.
func testdata(t *testing.T, path string) string {
	t.Helper()
	if !strings.HasPrefix(path, "testdata/") {
		return ""
	}
	var all strings.Builder
	err := filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		all.Write(content)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return all.String()
}

// shows fails the test unless a test exists and contains the name of a row.
func (s *sources) shows(t *testing.T, row, proof string) {
	t.Helper()
	name, sub, _ := strings.Cut(proof, "/")
	if !strings.HasPrefix(name, "Test") || s.declared[name] == nil {
		t.Errorf("%s: there is no test %s", row, name)
		return
	}
	text := strings.Join(s.texts(t, name), "\n")
	if sub != "" && !strings.Contains(text, sub) {
		t.Errorf("%s: %s has no case %q", row, name, sub)
	}
	word := regexp.MustCompile(`(^|[^a-z0-9-])` + regexp.QuoteMeta(strings.TrimPrefix(row, annotations.OwnPrefix)) +
		`($|[^a-z0-9-])`)
	if !word.MatchString(text) {
		t.Errorf("%s: %s does not write its name", row, name)
	}
}
