package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bareGoroutines maps each file that may start goroutines itself to the reason.
var bareGoroutines = map[string]string{
	"internal/process/panics/goroutines.go":   "it is the helper",
	"internal/tests/fixture/serve.go":         "tests only: a panic has to end the test",
	"internal/tests/fixture/processes.go":     "tests only: a panic has to end the test",
	"internal/tests/daemons/daemons_linux.go": "tests only: a panic has to end the test",
	"internal/tests/differential/ask.go":      "tests only: a panic has to end the test",
	"internal/tests/differential/compare.go":  "tests only: a panic has to end the test",
}

// productFolders are the folders with the code of the binary.
var productFolders = []string{"internal", "k8singress", "l4app", "caddyfile", "cmd"}

// checkFiles reports what faultsIn finds in the product's files, except in the files in allowed. It also reports files
// in allowed without a fault.
func checkFiles(t *testing.T, allowed map[string]string, faultsIn func(*ast.File) []string) {
	t.Helper()
	used := map[string]bool{}
	for _, name := range textFiles(t, ".go") {
		folder, _, _ := strings.Cut(name, "/")
		if !slices.Contains(productFolders, folder) || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range faultsIn(file) {
			if used[name] = true; allowed[name] == "" {
				t.Errorf("%s: %s", name, fault)
			}
		}
	}
	for name := range allowed {
		if !used[name] {
			t.Errorf("%s has nothing that it needs an exception for: take it off the list", name)
		}
	}
}

// TestGoroutinesAreGuarded checks that only package panics starts goroutines. A panic in any other goroutine would end
// the process.
func TestGoroutinesAreGuarded(t *testing.T) { checkFiles(t, bareGoroutines, bareIn) }

// bareIn returns the places where a file starts unguarded goroutines: go statements, calls of a method Go without the
// name of a place, and calls of AfterFunc of time and context.
func bareIn(file *ast.File) (faults []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			faults = append(faults, "use package panics in place of a go statement")
		case *ast.CallExpr:
			if name := bareCall(n); name != "" {
				faults = append(faults, "use package panics in place of "+name)
			}
		}
		return true
	})
	return faults
}

func bareCall(call *ast.CallExpr) string {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	of, _ := selector.X.(*ast.Ident)
	switch {
	case selector.Sel.Name == "AfterFunc" && of != nil && (of.Name == "time" || of.Name == "context"):
		return of.Name + ".AfterFunc"
	case selector.Sel.Name == "Go" && len(call.Args) == 1:
		return "the method Go"
	}
	return ""
}
