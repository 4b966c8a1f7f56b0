package caddyfile

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// TestFlagsOfIngressNginx holds that the error on a flag of ingress-nginx names the option that the documentation has for it.
func TestFlagsOfIngressNginx(t *testing.T) {
	data, err := os.ReadFile("../docs/migrate.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || !strings.HasPrefix(cells[1], " `--") {
			continue
		}
		var names []string
		for _, match := range quoted.FindAllStringSubmatch(cells[2], -1) {
			names = append(names, match[1])
		}
		for _, match := range quoted.FindAllStringSubmatch(cells[1], -1) {
			flag := strings.ReplaceAll(strings.TrimPrefix(match[1], "--"), "-", "_")
			if options.Find(flag) != nil || !strings.Contains(cells[2], "](caddyfile.md#") {
				continue
			}
			seen++
			for _, word := range []string{flag, match[1], match[1] + "=x"} {
				got := strings.TrimSuffix(strings.TrimPrefix(nearestOption(word), "; did you mean "), "?")
				if !slices.Contains(names, got) {
					t.Errorf("for %s the option is said to be %q, and documented as %q", word, got, names)
				}
			}
			option, _, _ := strings.Cut(flags[flag], " ")
			if options.Find(option) == nil {
				t.Errorf("there is no option %q", option)
			}
		}
	}
	if seen != len(flags) {
		t.Errorf("of %d flags the documentation has %d", len(flags), seen)
	}
}
