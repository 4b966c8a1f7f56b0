package arch_test

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// unclear matches phrases that say "that" or "one" in place of a noun, so that readers must search for the noun.
var unclear = regexp.MustCompile(`(?i)\b(?:(?:that|those) of|one that|is none|nobody|somebody|whoever)\b`)

// exempt removes an identifier and the name of an account, which unclear would match.
var exempt = strings.NewReplacer("NoBody", "", `"nobody"`, "")

// TestUnclearPhrases checks that product code and documentation have no unclear phrases. Rewrite such a line with the
// noun that it means; a phrase that only avoids the pattern is no better.
func TestUnclearPhrases(t *testing.T) {
	for _, name := range textFiles(t, ".go", ".md") {
		if strings.HasSuffix(name, "_test.go") ||
			slices.ContainsFunc([]string{"bench/", "test/", "release/"}, func(folder string) bool {
				return strings.HasPrefix(name, folder)
			}) {
			continue
		}
		eachLine(t, name, func(number int, line string) {
			if unclear.MatchString(exempt.Replace(line)) {
				t.Errorf("%s:%d has an unclear phrase: write the noun that it means: %s", name, number, line)
			}
		})
	}
}

// maxColumns is the width of Go code, which the linter checks, and of prose in Markdown.
const maxColumns = 120

// printedPages are printed from tables whose texts are wrapped in Go.
var printedPages = []string{
	"docs/annotations.md", "docs/caddyfile.md", "docs/configmap.md", "docs/flags.md", "docs/metrics.md",
	"docs/service-annotations.md",
}

// TestMarkdownWidth checks that prose in Markdown is wrapped. Tables, headings, code blocks, and lines that a URL makes
// long, are not prose.
func TestMarkdownWidth(t *testing.T) {
	for _, name := range textFiles(t, ".md") {
		if slices.Contains(printedPages, name) {
			continue
		}
		inCode := false
		eachLine(t, name, func(number int, line string) {
			text := strings.TrimSpace(line)
			if strings.HasPrefix(text, "```") {
				inCode = !inCode
			}
			if inCode || strings.HasPrefix(text, "|") || strings.HasPrefix(text, "#") || strings.Contains(text, "://") {
				return
			}
			if width := utf8.RuneCountInString(line); width > maxColumns {
				t.Errorf("%s:%d has %d columns, and prose has at most %d", name, number, width, maxColumns)
			}
		})
	}
}

// textFiles returns the files of the project with one of the extensions, relative to its root.
func textFiles(t *testing.T, extensions ...string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root &&
			slices.Contains([]string{".git", ".cache", "bin", "dist", "testdata"}, entry.Name()):
			return filepath.SkipDir
		case entry.Type().IsRegular() && slices.Contains(extensions, filepath.Ext(path)):
			name, err := filepath.Rel(root, path)
			names = append(names, filepath.ToSlash(name))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func eachLine(t *testing.T, name string, do func(number int, line string)) {
	t.Helper()
	file, err := os.Open(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		do(number, lines.Text())
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
