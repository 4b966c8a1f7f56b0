package arch_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ciScript installs the programs that the tests need.
const ciScript = ".ci/run"

// needed matches the Debian package in an entry of the list in ciScript, or in a line that adds a package to the list.
var needed = regexp.MustCompile(`(?m)^\t[^\s:]+:(\S+)$|^\tmissing\+=\((\S+)\)$`)

// onMostMachines are the packages whose programs README lists by their names.
var onMostMachines = []string{"make", "gcc", "libc6-dev", "curl", "util-linux", "procps"}

// TestREADMENamesPackages checks that README names each Debian package that CI installs.
func TestREADMENamesPackages(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, ciScript))
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	entries := needed.FindAllStringSubmatch(string(script), -1)
	if len(entries) <= len(onMostMachines) {
		t.Fatalf("%s has %d packages, and more were expected: has its list another form?", ciScript, len(entries))
	}
	for _, entry := range entries {
		name := entry[1] + entry[2]
		if !slices.Contains(onMostMachines, name) && !strings.Contains(string(readme), "`"+name+"`") {
			t.Errorf("%s installs Debian's package %s, but README does not name it", ciScript, name)
		}
	}
}
