package featuretests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// sources has the declarations of the tests in a folder by name, and the methods by the name of their type.
type sources struct {
	folder   string
	declared map[string][]ast.Node
}

// readTests reads all test files of a folder, including those for other operating systems.
func readTests(t *testing.T, folder string) *sources {
	t.Helper()
	s := &sources{folder, map[string][]ast.Node{}}
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
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

// texts returns the string literals in a declaration, and in the declarations that it refers to. names are all names
// in them.
func (s *sources) texts(t *testing.T, name string) (texts, names []string) {
	t.Helper()
	seen := map[string]bool{name: true}
	for _, declared := range s.declared[name] {
		found, mentioned := s.mentioned(t, declared)
		texts, names = append(texts, found...), append(names, mentioned...)
		for _, other := range mentioned {
			if seen[other] {
				continue
			}
			seen[other] = true
			for _, declared := range s.declared[other] {
				found, mentioned := s.mentioned(t, declared)
				texts, names = append(texts, found...), append(names, mentioned...)
			}
		}
	}
	return texts, names
}

// mentioned returns the string literals in a declaration, and the names in it. If a string is a path of testdata, it
// also returns the contents of the files there.
func (s *sources) mentioned(t *testing.T, declared ast.Node) (texts, names []string) {
	t.Helper()
	ast.Inspect(declared, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				texts = append(texts, text, s.testdata(t, text))
			}
		case *ast.Ident:
			names = append(names, n.Name)
		}
		return true
	})
	return texts, names
}

// testdata returns the contents of the files at a path, or nothing if the path is not in testdata.
func (s *sources) testdata(t *testing.T, path string) string {
	t.Helper()
	if !strings.HasPrefix(path, "testdata/") {
		return ""
	}
	var all strings.Builder
	err := filepath.WalkDir(filepath.Join(s.folder, path), func(path string, d fs.DirEntry, err error) error {
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

// shows fails the test unless a test exists and contains the name of a row as text, or the name of the row's field.
// kind is the kind of the row, as in prove. field is empty for rows without a field of their own.
func (s *sources) shows(t *testing.T, kind, row, field, proof string) {
	t.Helper()
	name, sub, _ := strings.Cut(proof, "/")
	if !strings.HasPrefix(name, "Test") || s.declared[name] == nil {
		t.Errorf("%s: there is no test %s in %s", row, name, s.folder)
		return
	}
	texts, names := s.texts(t, name)
	text := strings.Join(texts, "\n")
	if sub != "" && !strings.Contains(text, sub) {
		t.Errorf("%s: %s has no case %q", row, name, sub)
	}
	if !nameOf(kind, row).MatchString(text) && !slices.Contains(names, field) {
		t.Errorf("%s: %s does not write its name", row, name)
	}
}

// nameOf returns a pattern for the name of a row in the text of a test. An option must begin a line, as in a Caddyfile,
// or be the name of a JSON value, because words such as http and zone also occur in texts that configure nothing.
func nameOf(kind, row string) *regexp.Regexp {
	name := regexp.QuoteMeta(strings.TrimPrefix(row, annotations.OwnPrefix))
	if kind == "option" {
		return regexp.MustCompile(`(?m)^\s*` + name + `( |$)|"` + name + `":`)
	}
	return regexp.MustCompile(`(^|[^a-z0-9_-])` + name + `($|[^a-z0-9_-])`)
}
