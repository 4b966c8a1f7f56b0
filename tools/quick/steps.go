package main

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// repository is a checkout of the project. root is its folder.
type repository struct {
	root string
	// lint is the command of the linter, to which packages are appended. golden lists the packages with golden tests.
	lint, golden []string
}

const (
	// architecture is the package whose tests check the structure of the main module.
	architecture = "./internal/tests/arch"
	// features is the package with tests of the whole controller. It takes minutes, so for a change, only the tests in
	// changed files run, and the table of proofs.
	features    = "./internal/tests/featuretests"
	tableProofs = "TestProofs"
	// cluster is the package that needs a real control plane, which takes minutes to start. For a change, it is only
	// compiled.
	clusterModule, cluster = "test", "./e2e"
)

// stepsForFolders returns the steps that test and lint the packages in folders.
func (r repository) stepsForFolders(folders []string) ([]step, error) {
	var tests, lints []step
	for _, folder := range folders {
		module, pattern, ok := r.packageIn(path.Clean(filepath.ToSlash(folder)))
		if !ok {
			return nil, fmt.Errorf("%s is not a folder with Go files", folder)
		}
		tests = append(tests, step{module, []string{"go", "test", pattern}})
		lints = append(lints, step{module, append(slices.Clone(r.lint), pattern)})
	}
	return append(tests, lints...), nil
}

// stepsForChange returns the steps for the files that changed since main. It prints their number, and the files whose
// change may break tests that do not run.
func (r repository) stepsForChange(out io.Writer) ([]step, error) {
	base, err := r.base()
	if err != nil {
		return nil, err
	}
	files, err := r.changedSince(base)
	if err != nil {
		return nil, err
	}
	generated, err := r.generatedBy()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "== %d files changed since %s\n", len(files), base)
	single, shared := r.testsIn(files)
	if len(shared) > 0 {
		fmt.Fprintf(out, "== other tests may use %s: run go test %s\n", strings.Join(shared, ", "), features)
	}
	return r.steps(r.packagesOf(files), single, generated), nil
}

// steps returns the steps for changed packages, which are listed by module. single are the changed tests of the package
// features. generated maps packages to the tests of their generated files.
func (r repository) steps(changed map[string][]string, single []string, generated map[string][]string) []step {
	var tests, lints []step
	for _, module := range modules {
		packages := changed[module]
		if len(packages) > 0 {
			lints = append(lints, step{module, slices.Concat(r.lint, packages)})
		}
		if module == clusterModule && slices.Contains(packages, cluster) {
			tests = append(tests, step{module, []string{"go", "vet", cluster}})
			packages = without(packages, cluster)
		}
		if module == "." {
			packages = union(without(packages, features), r.golden, []string{architecture})
		}
		if len(packages) > 0 {
			tests = append(tests, step{module, append([]string{"go", "test"}, packages...)})
		}
		if module == "." {
			tests = append(tests, singleTests(packages, single, generated))
		}
	}
	return append(tests, lints...)
}

// singleTests returns the step with the tests that run without the rest of their package: the changed tests of the
// package features, the table of proofs, and the tests of generated files in packages other than tested.
func singleTests(tested, single []string, generated map[string][]string) step {
	names, packages := append(slices.Clone(single), tableProofs), []string{features}
	for p, checks := range generated {
		if !slices.Contains(tested, p) {
			names, packages = append(names, checks...), append(packages, p)
		}
	}
	pattern := "^(" + strings.Join(union(names), "|") + ")$"
	return step{".", append([]string{"go", "test", "-run", pattern}, union(packages)...)}
}

// modules are the folders of the modules, which have a go.mod each. The deepest folders come first.
var modules = []string{"test/chart", "test", "release", "tools", "."}

// packageIn returns the module of the package in a folder, and the pattern of the package for the go command. ok is
// false if the folder has no Go files.
func (r repository) packageIn(folder string) (module, pattern string, ok bool) {
	files, err := filepath.Glob(filepath.Join(r.root, folder, "*.go"))
	if err != nil || len(files) == 0 {
		return "", "", false
	}
	for _, module := range modules {
		if module == "." {
			return module, "./" + strings.TrimPrefix(folder, "."), true
		}
		if below, found := strings.CutPrefix(folder+"/", module+"/"); found {
			return module, "./" + strings.TrimSuffix(below, "/"), true
		}
	}
	return "", "", false
}

// packagesOf returns the packages to which files belong, by module. A file that is not a Go file belongs to the next
// package above it, such as test data, but not to the package at the root.
func (r repository) packagesOf(files []string) map[string][]string {
	changed := map[string][]string{}
	for _, file := range files {
		for folder := path.Dir(file); folder != "." || path.Ext(file) == ".go"; folder = path.Dir(folder) {
			if module, pattern, ok := r.packageIn(folder); ok {
				changed[module] = union(changed[module], []string{pattern})
				break
			}
			if folder == "." {
				break
			}
		}
	}
	return changed
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testsIn returns the names of the tests in files of the package features, and the files of this package without tests,
// such as a harness or test data.
func (r repository) testsIn(files []string) (names, shared []string) {
	for _, file := range files {
		if !strings.HasPrefix("./"+file, features+"/") {
			continue
		}
		// A file that cannot be read was deleted. Other files may have used it.
		text, _ := os.ReadFile(filepath.Join(r.root, file))
		tests := testFunction.FindAllSubmatch(text, -1)
		for _, match := range tests {
			names = append(names, string(match[1]))
		}
		if len(tests) == 0 {
			shared = append(shared, file)
		}
	}
	return names, shared
}

// union returns the elements of all lists, sorted and without duplicates.
func union(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// without returns a copy of list without element.
func without(list []string, element string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == element })
}
