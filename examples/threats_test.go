package examples_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`")
	anAttack  = regexp.MustCompile(`^TestTenant[0-9]`)
	advisory  = regexp.MustCompile(`(?i)CVE-[0-9]{4}-[0-9]+`)
	aTest     = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9]+)\(`)
)

// TestAdvisories checks that the tests contain each advisory about injected configuration in docs/threat-model.md.
func TestAdvisories(t *testing.T) {
	tested := map[string]bool{}
	for _, pattern := range []string{
		"../internal/tests/featuretests/cve*_test.go", "../internal/tests/featuretests/testdata/cves.yaml",
		"../internal/control/webhook/*_test.go",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files %s: %v", pattern, err)
		}
		for _, file := range files {
			for _, found := range advisory.FindAllString(read(t, file), -1) {
				tested[strings.ToUpper(found)] = true
			}
		}
	}
	_, section, _ := strings.Cut(read(t, "../docs/threat-model.md"), "\n## Advisories about injected configuration")
	section, _, _ = strings.Cut(section, "\n## ")
	all := advisory.FindAllString(section, -1)
	if len(all) < 15 {
		t.Fatalf("the page has the advisories %v", all)
	}
	for _, name := range all {
		if !tested[name] {
			t.Errorf("there is no test for %s", name)
		}
	}
}

// TestThreatModel checks that every test named in docs/threat-model.md exists, that each threat has a test, and that
// each attack of one namespace on another is listed.
func TestThreatModel(t *testing.T) {
	there := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range aTest.FindAllStringSubmatch(string(text), -1) {
			there[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	page := read(t, "../docs/threat-model.md")
	named := map[string]bool{}
	for _, found := range namedTest.FindAllStringSubmatch(page, -1) {
		if named[found[1]] = true; !there[found[1]] {
			t.Errorf("there is no %s", found[1])
		}
	}
	for name := range there {
		if anAttack.MatchString(name) && !named[name] {
			t.Errorf("%s is not in docs/threat-model.md", name)
		}
	}
	for section := range strings.SplitSeq(page, "\n## ") {
		_, rows, _ := strings.Cut(section, "| threat | protection | tests |\n| --- | --- | --- |\n")
		for row := range strings.Lines(rows) {
			if strings.HasPrefix(row, "| ") && !namedTest.MatchString(row) {
				t.Errorf("no test holds: %s", row)
			}
		}
	}
}
