package arch_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

//go:generate go test -run ^TestLinterRules$ -update

var update = flag.Bool("update", false, "write the rules of .golangci.yml")

// The rules are between these lines of .golangci.yml.
const (
	rulesStart = "        # Printed from internal/tests/arch/folders_test.go by `make generate`.\n"
	rulesEnd   = "        # End of the printed rules.\n"
)

// TestLinterRules checks that depguard has the same import order as the tables, so that editors show a fault before the
// tests do.
func TestLinterRules(t *testing.T) {
	const file = root + "/.golangci.yml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), rulesStart)
	_, after, foundEnd := strings.Cut(rest, rulesEnd)
	if !found || !foundEnd {
		t.Fatalf("%s has no place for the rules", file)
	}
	fixture.Generated(t, file, before+rulesStart+linterRules()+rulesEnd+after, *update)
}

// linterRules returns one rule of depguard for each folder of product code. The root package has files of its own only,
// which depguard cannot name.
func linterRules() string {
	var text strings.Builder
	for level, f := range order {
		if f.tests || f.name == "." {
			continue
		}
		fmt.Fprintf(&text, "        %s:\n          files:\n            - \"**/%s/**\"\n            - \"!$test\"\n",
			strings.TrimPrefix(strings.ReplaceAll(f.name, "/", "-"), "internal-"), f.name)
		for _, e := range exceptions {
			if below(e.name, f.name) {
				fmt.Fprintf(&text, "            - \"!**/%s/**\"\n", e.name)
			}
		}
		text.WriteString("          deny:\n")
		for _, higher := range order[level+1:] {
			if higher.name != "." {
				fmt.Fprintf(&text, "            - pkg: %s/%s\n              desc: %s\n", module, higher.name,
					descriptionOf(higher))
			}
		}
		for _, r := range restricted {
			if !slices.Contains(f.imports, r.path) {
				fmt.Fprintf(&text, "            - pkg: %s\n              desc: %s\n", r.path, r.reason)
			}
		}
	}
	return text.String()
}

func descriptionOf(higher folder) string {
	if higher.tests {
		return "it is for tests only"
	}
	return "it is above this folder"
}
