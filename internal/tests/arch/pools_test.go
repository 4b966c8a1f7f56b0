package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// ownPools maps each file that may use a sync.Pool to the reason.
var ownPools = map[string]string{
	"internal/model/pools/pools.go": "it is the helper",
}

// TestPooledMemoryHasOneOwner checks that only package pools reuses memory, since it checks the ownership, and that no
// call of Release is deferred: after a panic, another goroutine may still use the memory.
func TestPooledMemoryHasOneOwner(t *testing.T) { checkFiles(t, ownPools, pooledIn) }

const (
	barePool        = "use package pools in place of a sync.Pool"
	deferredRelease = "call Release where the memory is not used any more, in place of deferring it"
)

// pooledIn returns the places where a file uses a sync.Pool or defers a Release.
func pooledIn(file *ast.File) (faults []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok && of.Name == "sync" && n.Sel.Name == "Pool" {
				faults = append(faults, barePool)
			}
		case *ast.ImportSpec:
			if n.Path.Value == `"sync"` && n.Name != nil {
				faults = append(faults, "import sync by its own name")
			}
		case *ast.DeferStmt:
			if releases(n.Call) {
				faults = append(faults, deferredRelease)
			}
		}
		return true
	})
	return faults
}

// releases reports whether a call is a call of Release without arguments, or of a function that calls it. The method
// Release of a semaphore takes a weight, and may be deferred.
func releases(call *ast.CallExpr) (found bool) {
	ast.Inspect(call, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if ok && len(call.Args) == 0 {
			selector, isMethod := call.Fun.(*ast.SelectorExpr)
			found = found || isMethod && selector.Sel.Name == "Release"
		}
		return !found
	})
	return found
}

// TestPooledMemoryFaultsAreFound checks that the checks of the test above find each fault, because that test would also
// pass if it checked no files.
func TestPooledMemoryFaultsAreFound(t *testing.T) {
	for text, want := range map[string][]string{
		`import "sync"; var p = sync.Pool{}`:                 {barePool},
		`import "sync"; type t struct{ p *sync.Pool }`:       {barePool},
		`import s "sync"; var p s.Pool`:                      {"import sync by its own name"},
		`func f() { defer h.Release() }`:                     {deferredRelease},
		`func f() { defer func() { h.buffer.Release() }() }`: {deferredRelease},
		`func f() { h.Release(); defer h.Close() }`:          nil,
		`func f() { defer semaphore.Release(1) }`:            nil,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a; "+text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := pooledIn(file); !slices.Equal(got, want) {
			t.Errorf("%s: the faults are %q, want %q", text, got, want)
		}
	}
}
