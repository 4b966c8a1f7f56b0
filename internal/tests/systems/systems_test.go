//go:build !race

package systems_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// module is the import path of this module.
const module = "github.com/k8singress/k8singress"

// listed has the fields of `go list` that the checker needs. Dir holds GoFiles. ImportMap has the names under which the
// standard library keeps packages of other modules.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
}

// TestOtherSystems type-checks our packages of the binary for macOS and Windows, on which all features except UDP
// ports work. It takes seconds, whereas a build takes minutes because it compiles Caddy and client-go for each system.
// The race detector would find nothing and make it slow.
func TestOtherSystems(t *testing.T) {
	for _, system := range []string{"darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			c, environment := newChecker(), []string{"GOOS=" + system, "CGO_ENABLED=0"}
			for _, p := range fixture.GoList[listed](t, "../../..", environment, "-deps", "./cmd/caddy") {
				for _, err := range c.check(t, p) {
					t.Error(err)
				}
			}
		})
	}
}

// TestOtherSystemsFinds checks that the check of TestOtherSystems finds errors. Without it, TestOtherSystems would
// pass if it checked no packages.
func TestOtherSystemsFinds(t *testing.T) {
	p := listed{ImportPath: module + "/socket", Dir: t.TempDir(), GoFiles: []string{"socket.go"}}
	const code = "package socket\n\nfunc listen() int { return reusePort }\n"
	if err := os.WriteFile(filepath.Join(p.Dir, p.GoFiles[0]), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := newChecker().check(t, p); len(found) != 1 ||
		!strings.Contains(found[0].Error(), "undefined: reusePort") {
		t.Errorf("%q has the faults %v", code, found)
	}
	p.ImportPath = "example.org/socket"
	if found := newChecker().check(t, p); len(found) != 0 {
		t.Errorf("a package of others has the faults %v", found)
	}
}

// checker holds the packages that it has checked. Each package is checked after the packages that it imports.
type checker struct {
	files    *token.FileSet
	packages map[string]*types.Package
}

func own(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

func newChecker() checker {
	return checker{files: token.NewFileSet(), packages: map[string]*types.Package{}}
}

// check returns the type errors in a package of this module. For packages of other modules it reads only the
// declarations.
func (c checker) check(t *testing.T, p listed) (found []error) {
	if p.ImportPath == "unsafe" {
		c.packages[p.ImportPath] = types.Unsafe
		return nil
	}
	config := types.Config{
		Importer:         imports{c.packages, p.ImportMap},
		IgnoreFuncBodies: !own(p.ImportPath),
		Sizes:            types.SizesFor("gc", "amd64"),
		Error: func(err error) {
			// Where functions are not read, nothing uses some of the imports.
			if own(p.ImportPath) {
				found = append(found, err)
			}
		},
	}
	c.packages[p.ImportPath], _ = config.Check(p.ImportPath, c.files, c.parse(t, p), nil)
	return found
}

func (c checker) parse(t *testing.T, p listed) []*ast.File {
	files := make([]*ast.File, len(p.GoFiles))
	var group errgroup.Group
	for i, name := range p.GoFiles {
		group.Go(func() (err error) {
			files[i], err = parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return files
}

// imports resolves the import paths of one package.
type imports struct {
	packages map[string]*types.Package
	names    map[string]string
}

func (i imports) Import(name string) (*types.Package, error) {
	if vendored, ok := i.names[name]; ok {
		name = vendored
	}
	if p, ok := i.packages[name]; ok {
		return p, nil
	}
	return nil, fmt.Errorf("go list has not named %s", name)
}
