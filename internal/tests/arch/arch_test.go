package arch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the folder that contains go.mod.
const root = "../../.."

// listed holds the output of `go list -json` for one package.
type listed struct {
	ImportPath string
	Standard   bool
	Module     *struct{ Path string }
	// Imports are its own, Deps are those and all that they import in turn.
	Imports []string
	Deps    []string
	// Dir holds GoFiles. ImportMap has the names under which the standard library keeps packages of others.
	Dir       string
	GoFiles   []string
	ImportMap map[string]string
}

func TestImportsPointDown(t *testing.T) {
	readTree(t)
	packages := list(t, nil, "-deps", "./...")
	for _, fault := range faults(house, packages) {
		t.Error(fault)
	}
}

// The test above would pass if it checked no packages, so this test checks that each rule finds its violation.
func TestFaultsAreFound(t *testing.T) {
	house := []room{
		{name: "low", level: 0, standard: true},
		{name: "translator", level: 1, never: []string{"example.org/caddy"}},
		{name: "peer", level: 1},
		{name: "top", level: 2},
		{name: "gone", level: 3},
		{name: "stage", level: 0, tests: true},
	}
	own := func(name string, imports ...string) listed {
		return listed{ImportPath: module + "/" + name, Module: &struct{ Path string }{module}, Imports: imports, Deps: imports}
	}
	through := own("translator", "example.org/harmless")
	through.Deps = append(through.Deps, "example.org/caddy/sub")
	cases := []struct {
		name  string
		pkg   listed
		fault string
	}{
		{"no row", own("attic"), "attic has no row in the table"},
		{"own level", own("peer", module+"/translator"), "peer imports translator, which is not below it"},
		{"upwards", own("peer", module+"/top"), "peer imports top, which is not below it"},
		{"what tests have", own("top", module+"/stage"), "top imports stage, which is for tests only"},
		{"not standard", own("low", "example.org/x"), "low imports example.org/x; it may import the standard library only"},
		{"through another", through, "translator reaches example.org/caddy/sub"},
		{"client-go", own("top", clientGo+"/rest"), "top imports k8s.io/client-go/rest"},
		{"a program", own("top", runProgram), "top imports os/exec"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			found := faults(house, []listed{c.pkg})
			if !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, c.fault) }) {
				t.Errorf("faults are %q, want one that begins with %q", found, c.fault)
			}
		})
	}
	if found := faults(house, []listed{own("low")}); !slices.Contains(found, "gone has a row in the table and no package") {
		t.Errorf("faults are %q, want the row without a package", found)
	}
}

// readTree opens each folder with Go files, so that `go test` knows that the result depends on them. Otherwise it
// would use its cached result after a change in a package that only `go list` reads.
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

// list runs go list at the root of the module, with variables added to its environment.
func list(t *testing.T, environment []string, arguments ...string) []listed {
	t.Helper()
	arguments = append([]string{"list", "-json=ImportPath,Standard,Module,Imports,Deps,Dir,GoFiles,ImportMap"}, arguments...)
	command := exec.CommandContext(t.Context(), "go", arguments...)
	command.Dir = root
	command.Env = append(command.Environ(), environment...)
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var packages []listed
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// faults returns the violations of the table in packages.
func faults(house []room, packages []listed) []string {
	rooms, seen := map[string]room{}, map[string]bool{}
	for _, r := range house {
		rooms[r.name] = r
	}
	standard := map[string]bool{}
	for _, p := range packages {
		standard[p.ImportPath] = p.Standard
	}
	var found []string
	for _, p := range packages {
		if p.Module == nil || p.Module.Path != module {
			continue
		}
		name := nameOf(p.ImportPath)
		r, ok := rooms[name]
		seen[name] = true
		if !ok {
			found = append(found, name+" has no row in the table: add it to house_test.go, at its level")
			continue
		}
		found = append(found, r.order(p, rooms)...)
		found = append(found, r.outside(p, standard)...)
	}
	for _, r := range house {
		if !seen[r.name] {
			found = append(found, r.name+" has a row in the table and no package")
		}
	}
	return found
}

// order returns the violations in a package's imports from this module.
func (r room) order(p listed, rooms map[string]room) (found []string) {
	for _, path := range p.Imports {
		if !own(path) {
			continue
		}
		other, ok := rooms[nameOf(path)]
		if ok && other.level >= r.level {
			found = append(found, fmt.Sprintf("%s imports %s, which is not below it", r.name, other.name))
		}
		if other.tests && !r.tests {
			found = append(found, fmt.Sprintf("%s imports %s, which is for tests only", r.name, other.name))
		}
	}
	return found
}

// outside returns the violations in a package's imports from other modules and from the standard library.
func (r room) outside(p listed, standard map[string]bool) (found []string) {
	for _, path := range p.Imports {
		switch {
		case r.standard && !standard[path]:
			found = append(found, fmt.Sprintf("%s imports %s; it may import the standard library only", r.name, path))
		case !r.client && below(path, clientGo):
			found = append(found, fmt.Sprintf("%s imports %s; only rooms with client in their row do", r.name, path))
		case !r.programs && path == runProgram:
			found = append(found, fmt.Sprintf("%s imports %s; only rooms with programs in their row do", r.name, path))
		}
	}
	for _, path := range p.Deps {
		if slices.ContainsFunc(r.never, func(prefix string) bool { return below(path, prefix) }) {
			found = append(found, fmt.Sprintf("%s reaches %s, which its row forbids", r.name, path))
		}
	}
	return found
}

func own(path string) bool { return below(path, module) }

func below(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }

// nameOf returns the table's name for a package of this module.
func nameOf(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}
