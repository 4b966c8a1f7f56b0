package arch_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// root is the folder of go.mod.
const root = "../../.."

// listed has the fields of `go list` that the rules read.
type listed struct {
	ImportPath string
	Standard   bool
	Module     *struct{ Path string }
	// Imports are the packages that it imports itself. Deps also has what these import in turn.
	Imports []string
	Deps    []string
}

// TestImportsPointDown checks that packages import only their own folder and lower ones, and reach only what the tables
// allow.
func TestImportsPointDown(t *testing.T) {
	readTree(t)
	for _, fault := range faults(fixture.GoList[listed](t, root, nil, "-deps", "./...")) {
		t.Error(fault)
	}
}

// TestFaultsAreFound checks that each rule finds its fault. TestImportsPointDown would also pass if it looked at
// nothing.
func TestFaultsAreFound(t *testing.T) {
	pkg := func(name string, imports ...string) listed {
		return listed{ImportPath: module + "/" + name, Module: &struct{ Path string }{module}, Imports: imports,
			Deps: imports}
	}
	indirect := pkg("internal/translate/hosts", "example.org/harmless")
	indirect.Deps = append(indirect.Deps, caddy+"/v2")
	for _, c := range []struct {
		name  string
		pkg   listed
		fault string
	}{
		{"no folder", pkg("internal/attic/old"), "internal/attic/old is in no folder of the table"},
		{"upwards", pkg("internal/model/ir", module+"/internal/http/live"),
			"internal/model/ir imports internal/http/live, which is above it"},
		{"test code", pkg("k8singress", module+"/internal/tests/fixture"),
			"k8singress imports internal/tests/fixture, which is for tests"},
		{"not standard", pkg("internal/model/ir", "example.org/x"),
			"internal/model/ir imports example.org/x, and may import the standard"},
		{"indirectly", indirect, "internal/translate/hosts reaches " + caddy + "/v2"},
		{"narrower", pkg("internal/control/render", kubernetes+"/api/core/v1"),
			"internal/control/render reaches " + kubernetes},
		{"client-go", pkg("k8singress", clientGo+"/rest"), "k8singress imports " + clientGo + "/rest"},
		{"a program", pkg("k8singress", runProgram), "k8singress imports " + runProgram},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := faults([]listed{c.pkg, {ImportPath: "example.org/x"}})
			if !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, c.fault) }) {
				t.Errorf("the faults are %q, want one that starts with %q", found, c.fault)
			}
		})
	}
	if found := faults(nil); !slices.Contains(found, "internal/model is in the table and has no package") {
		t.Errorf("the faults are %q, want the folder without a package", found)
	}
}

// readTree opens each folder with Go files. `go test` then knows that the result depends on them, and does not take it
// from its cache when a package changes that only `go list` reads.
func readTree(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// faults compares packages with the tables, and returns a sentence for each fault.
func faults(packages []listed) (found []string) {
	standard, seen := map[string]bool{}, map[string]bool{}
	for _, p := range packages {
		standard[p.ImportPath] = p.Standard
	}
	for _, p := range packages {
		if p.Module == nil || p.Module.Path != module {
			continue
		}
		name := nameOf(p.ImportPath)
		level := levelOf(name)
		if level < 0 {
			found = append(found,
				name+" is in no folder of the table: move it into one, or add a row to folders_test.go")
			continue
		}
		seen[order[level].name], seen[name] = true, true
		found = append(found, orderFaults(p, level)...)
		found = append(found, outsideFaults(p, level)...)
		if slices.Contains(standardOnly, name) {
			found = append(found, standardFaults(p, standard)...)
		}
	}
	return append(found, unusedRows(seen)...)
}

// levelOf returns the index of the folder that has a package, or -1.
func levelOf(name string) int {
	return slices.IndexFunc(order, func(f folder) bool { return below(name, f.name) })
}

// orderFaults checks what a package imports of this module.
func orderFaults(p listed, level int) (found []string) {
	for _, path := range p.Imports {
		if !own(path) {
			continue
		}
		other := levelOf(nameOf(path))
		switch {
		case other < 0 || order[level].tests:
		case order[other].tests:
			found = append(found, fmt.Sprintf("%s imports %s, which is for tests only", nameOf(p.ImportPath),
				nameOf(path)))
		case other > level:
			found = append(found, fmt.Sprintf("%s imports %s, which is above it", nameOf(p.ImportPath), nameOf(path)))
		}
	}
	return found
}

// outsideFaults checks the restricted paths that a package imports and, in a pure folder, those that it reaches.
func outsideFaults(p listed, level int) (found []string) {
	name, row := nameOf(p.ImportPath), order[level]
	for _, r := range restricted {
		matches := func(path string) bool { return below(path, r.path) }
		allowed := slices.Contains(row.imports, r.path) || excepted(name, r.path)
		if i := slices.IndexFunc(p.Imports, matches); i >= 0 && !allowed {
			found = append(found, fmt.Sprintf("%s imports %s: %s", name, p.Imports[i], r.reason))
		} else if i := slices.IndexFunc(p.Deps, matches); i >= 0 && row.pure {
			found = append(found, fmt.Sprintf("%s reaches %s: %s", name, p.Deps[i], r.reason))
		}
	}
	for _, n := range narrower {
		i := slices.IndexFunc(p.Deps, func(reached string) bool { return below(reached, n.path) })
		if i >= 0 && below(name, n.name) {
			found = append(found, fmt.Sprintf("%s reaches %s: %s", name, p.Deps[i], n.reason))
		}
	}
	return found
}

// excepted reports whether the list of exceptions lets a package import a restricted path.
func excepted(name, path string) bool {
	for _, e := range exceptions {
		if e.name == name && e.path == path {
			return true
		}
	}
	return false
}

// standardFaults checks that a package imports only the standard library.
func standardFaults(p listed, standard map[string]bool) (found []string) {
	for _, path := range p.Imports {
		if !standard[path] {
			found = append(found, fmt.Sprintf("%s imports %s, and may import the standard library only",
				nameOf(p.ImportPath), path))
		}
	}
	return found
}

// unusedRows returns a fault for each row of the tables that names no package.
func unusedRows(seen map[string]bool) (found []string) {
	var names []string
	for _, f := range order {
		names = append(names, f.name)
	}
	for _, e := range exceptions {
		names = append(names, e.name)
	}
	for _, n := range narrower {
		names = append(names, n.name)
	}
	for _, name := range append(names, standardOnly...) {
		if !seen[name] {
			found = append(found, name+" is in the table and has no package")
		}
	}
	return found
}

func own(path string) bool { return below(path, module) }

func below(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }

// nameOf returns the name that the tables have for a package of this module.
func nameOf(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}
