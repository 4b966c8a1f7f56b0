// Quick runs the checks for a change that is being written, and prints each command with its time. `make quick
// PKG=internal/http/filter` tests and lints one package. `make changed` tests and lints the packages that changed since
// main, and runs the tests that a change of another package can break: golden tests, tables of proofs, generated files,
// and the structure of the module. `make check` is the complete check.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	root := flag.String("dir", ".", "the root of the repository")
	changed := flag.Bool("changed", false, "check the packages that changed since main")
	lint := flag.String("lint", "", "the command of the linter, without packages")
	golden := flag.String("golden", "", "the packages with golden tests")
	flag.Parse()
	r := repository{root: *root, lint: strings.Fields(*lint), golden: strings.Fields(*golden)}
	if err := run(os.Stdout, r, *changed, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run checks the packages that changed, or the packages in folders.
func run(out io.Writer, r repository, changed bool, folders []string) error {
	var steps []step
	var err error
	switch {
	case changed:
		steps, err = r.stepsForChange(out)
	case len(folders) == 0:
		err = errors.New("usage: make quick PKG=FOLDER, such as PKG=internal/http/filter")
	default:
		steps, err = r.stepsForFolders(folders)
	}
	if err != nil {
		return err
	}
	return runAll(out, r.root, steps)
}

// step is one command of a check.
type step struct {
	// module is the folder of the module in which the command runs, relative to the root of the repository.
	module  string
	command []string
}

// runAll runs all steps, even if some of them fail. It returns an error that names the failed steps.
func runAll(out io.Writer, root string, steps []step) error {
	begin := time.Now()
	var failed []error
	for _, s := range steps {
		fmt.Fprintf(out, "== %s\n", s)
		started := time.Now()
		command := exec.Command(s.command[0], s.command[1:]...)
		command.Dir, command.Stdout, command.Stderr = filepath.Join(root, s.module), out, os.Stderr
		err := command.Run()
		if err != nil {
			failed = append(failed, fmt.Errorf("== failed: %s: %w", s, err))
		}
		fmt.Fprintf(out, "== %.1f s\n", time.Since(started).Seconds())
	}
	fmt.Fprintf(out, "== all: %.1f s\n", time.Since(begin).Seconds())
	return errors.Join(failed...)
}

// String returns the command as it would be typed at the root of the repository. It shortens the linter's command to
// its name.
func (s step) String() string {
	text := strings.Join(s.command, " ")
	if _, arguments, ok := strings.Cut(text, "golangci-lint "); ok {
		text = "golangci-lint " + arguments
	}
	if s.module != "." {
		text = "cd " + s.module + " && " + text
	}
	return text
}
