package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// behavioursHeading is the heading of the section in CONTRIBUTING.md with the table of behaviours. minBehaviours is the
// minimum number of its rows.
const (
	behavioursHeading = "## Where to find a behaviour"
	minBehaviours     = 30
)

// behaviourRow matches one row of the table: a behaviour, the file that decides about it, and the function or variable.
var behaviourRow = regexp.MustCompile("^\\| (.+) \\| `([^`]+)` \\| `([^`]+)` \\|$")

// TestBehavioursExist checks that each file in the table of behaviours declares the function that the table names.
func TestBehavioursExist(t *testing.T) {
	rows := behaviourRows(t)
	if len(rows) < minBehaviours {
		t.Errorf("CONTRIBUTING.md has %d rows below %q, want at least %d", len(rows), behavioursHeading, minBehaviours)
	}
	for _, row := range rows {
		if fault := behaviourFault(os.DirFS(root), row); fault != "" {
			t.Errorf("CONTRIBUTING.md: %s", fault)
		}
	}
}

// behaviourRows returns the rows of the table of behaviours, without the two lines of its head.
func behaviourRows(t *testing.T) (rows []string) {
	t.Helper()
	inside := false
	eachLine(t, "CONTRIBUTING.md", func(_ int, line string) {
		switch {
		case strings.HasPrefix(line, "## "):
			inside = line == behavioursHeading
		case inside && strings.HasPrefix(line, "|"):
			rows = append(rows, line)
		}
	})
	return rows[min(2, len(rows)):]
}

// behaviourFault returns a sentence that says what is wrong with a row of the table and how to fix it, or "". files is
// the root of the module.
func behaviourFault(files fs.FS, row string) string {
	match := behaviourRow.FindStringSubmatch(row)
	if match == nil {
		return fmt.Sprintf("write the row %s as | behaviour | `file.go` | `function` |", row)
	}
	behaviour, name, function := match[1], match[2], match[3]
	source, err := fs.ReadFile(files, name)
	if err != nil {
		return fmt.Sprintf("the file of the row %q does not exist: %v. Write the file to which %s has moved",
			behaviour, err, function)
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Sprintf("the file of the row %q cannot be parsed: %v", behaviour, err)
	}
	if !slices.Contains(declaredIn(file), function) {
		return fmt.Sprintf("%s does not declare %s, which the row %q names: write the file and the function that "+
			"decide now", name, function, behaviour)
	}
	return ""
}

// declaredIn returns the names of the functions, methods and package variables of a file. The name of a method is
// "Type.Method".
func declaredIn(file *ast.File) (names []string) {
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiverOf(d.Recv.List[0].Type) + "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if variables, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR {
					for _, variable := range variables.Names {
						names = append(names, variable.Name)
					}
				}
			}
		}
	}
	return names
}

// receiverOf returns the name of the type of a receiver, without the pointer and type parameters.
func receiverOf(receiver ast.Expr) string {
	switch r := receiver.(type) {
	case *ast.StarExpr:
		return receiverOf(r.X)
	case *ast.IndexExpr:
		return receiverOf(r.X)
	case *ast.IndexListExpr:
		return receiverOf(r.X)
	case *ast.Ident:
		return r.Name
	}
	return ""
}

// TestBehaviourFaultsAreFound checks that behaviourFault accepts each kind of declaration, and finds each fault.
func TestBehaviourFaultsAreFound(t *testing.T) {
	files := fstest.MapFS{"a/a.go": {Data: []byte(`package a
type t[K any] struct{}
func (*t[K]) method() {}
func function() {}
var table = 1
const constant = 1
`)}, "a/broken.go": {Data: []byte("package")}}
	for row, fault := range map[string]string{
		"| x | `a/a.go` | `function` |": "",
		"| x | `a/a.go` | `t.method` |": "",
		"| x | `a/a.go` | `table` |":    "",
		"| x | `a/a.go` | `method` |":   "a/a.go does not declare method",
		"| x | `a/a.go` | `t.other` |":  "a/a.go does not declare t.other",
		"| x | `a/a.go` | `constant` |": "a/a.go does not declare constant",
		"| x | `a/b.go` | `function` |": `the file of the row "x" does not exist`,
		"| x | `a/broken.go` | `f` |":   `the file of the row "x" cannot be parsed`,
		"| x | a/a.go | function |":     "write the row | x | a/a.go | function | as",
	} {
		if got := behaviourFault(files, row); fault == "" && got != "" || !strings.HasPrefix(got, fault) {
			t.Errorf("%s: the fault is %q, want %q", row, got, fault)
		}
	}
}
