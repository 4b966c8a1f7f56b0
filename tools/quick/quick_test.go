package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// checkout returns a repository with a branch whose commit, working tree and untracked files differ from main.
func checkout(t *testing.T) repository {
	t.Helper()
	r := repository{root: t.TempDir(), lint: []string{"lint"}, golden: []string{"./golden"}}
	r.write(t, "", "root.go", "a/a.go", "b/b.go", "d/d.go", "test/e2e/e.go", "test/testbed/t.go", "test/chart/c.go",
		"tools/x/x.go", "internal/tests/featuretests/old_test.go")
	r.write(t, "//go:generate go test -run ^TestReference$ -update\n", "c/c.go")
	r.write(t, "//go:generate go test -run ^TestSchema$ -update\n", "c/schema.go")
	r.commit(t, "init", "-q", "-b", "main")
	r.write(t, "", "b/testdata/deep/ä b.txt", "docs/page.md", "test/e2e/more.go")
	r.commit(t, "checkout", "-q", "-b", "topic")
	r.write(t, "func TestCORS(t *testing.T) {}\n", "internal/tests/featuretests/cors_test.go")
	r.write(t, "", "a/more.go", "d/testdata/c ü.txt", "tools/x/y.go", "test/testbed/u.go",
		"internal/tests/featuretests/harness_test.go", "internal/tests/featuretests/testdata/in.yaml")
	return r
}

// write creates files that contain text.
func (r repository) write(t *testing.T, text string, files ...string) {
	t.Helper()
	for _, file := range files {
		name := filepath.Join(r.root, file)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// commit runs a command of git, and then commits all files that changed.
func (r repository) commit(t *testing.T, command ...string) {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	user := []string{"-c", "user.name=test", "-c", "user.email=test@example.com"}
	for _, arguments := range [][]string{command, {"add", "."},
		append(user, "commit", "--allow-empty", "--quiet", "--message", "a change")} {
		if _, err := r.git(arguments...); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStepsForChange checks which packages and tests are checked after a change.
func TestStepsForChange(t *testing.T) {
	var out strings.Builder
	steps, err := checkout(t).stepsForChange(&out)
	if err != nil {
		t.Fatal(err)
	}
	const shared = "== other tests may use internal/tests/featuretests/harness_test.go, " +
		"internal/tests/featuretests/testdata/in.yaml: run go test ./internal/tests/featuretests\n"
	if got := out.String(); !strings.HasPrefix(got, "== 10 files changed since ") || !strings.HasSuffix(got, shared) {
		t.Errorf("the output is %q", got)
	}
	var got []string
	for _, s := range steps {
		got = append(got, s.String())
	}
	want := []string{
		"cd test && go vet ./e2e",
		"cd test && go test ./testbed",
		"cd tools && go test ./x",
		"go test ./a ./b ./d ./golden ./internal/tests/arch",
		"go test -run ^(TestCORS|TestProofs|TestReference|TestSchema)$ ./c ./internal/tests/featuretests",
		"cd test && lint ./e2e ./testbed",
		"cd tools && lint ./x",
		"lint ./a ./b ./d ./internal/tests/featuretests",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the steps are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestStepsForFolders checks that a package of any module is tested and linted in its module.
func TestStepsForFolders(t *testing.T) {
	r := checkout(t)
	for folder, want := range map[string]string{
		".": "go test ./; lint ./", "a": "go test ./a; lint ./a", "./b/": "go test ./b; lint ./b",
		"test/chart":   "cd test/chart && go test ./; cd test/chart && lint ./",
		"test/testbed": "cd test && go test ./testbed; cd test && lint ./testbed",
	} {
		steps, err := r.stepsForFolders([]string{folder})
		if err != nil || len(steps) != 2 {
			t.Fatalf("%s: %v, %v", folder, steps, err)
		}
		if got := steps[0].String() + "; " + steps[1].String(); got != want {
			t.Errorf("%s: the steps are %q, want %q", folder, got, want)
		}
	}
	if _, err := r.stepsForFolders([]string{"docs"}); err == nil {
		t.Error("a folder without Go files is accepted")
	}
}

// TestFailedSteps checks that each failed step is named, and that the other steps run.
func TestFailedSteps(t *testing.T) {
	var out strings.Builder
	err := runAll(&out, t.TempDir(), []step{{".", []string{"go", "nothing"}}, {".", []string{"go", "version"}}})
	if err == nil || !strings.Contains(err.Error(), "go nothing") || strings.Contains(err.Error(), "go version") {
		t.Errorf("the error is %v", err)
	}
	if !strings.Contains(out.String(), "go version go") {
		t.Errorf("the output is %q", out.String())
	}
}
