package examples_test

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// fileOfPage matches the name of a file in the text before its content.
var fileOfPage = regexp.MustCompile("`(first/[a-zA-Z./-]+)`")

// TestFirstIngress follows docs/first-ingress.md: it writes the files of the page, runs the commands with curl, and
// compares their output with the comments below them.
func TestFirstIngress(t *testing.T) {
	page, _, _ := strings.Cut(read(t, "../docs/first-ingress.md"), "\n## In a cluster\n")
	var replacements []string
	for _, port := range []string{"8080", "8443", "9001", "9002"} {
		replacements = append(replacements, port, fixture.Port(t))
	}
	replacements = append(replacements, "\n{\n", "\n{\n\tadmin off\n")
	t.Chdir(t.TempDir())
	commands := 0
	blocks := strings.Split(strings.NewReplacer(replacements...).Replace(page), "```")
	for i := 1; i < len(blocks); i += 2 {
		language, text, _ := strings.Cut(blocks[i], "\n")
		name := ""
		if names := fileOfPage.FindAllStringSubmatch(blocks[i-1], -1); len(names) > 0 {
			name = names[len(names)-1][1]
		}
		switch language {
		case "caddyfile":
			write(t, "first/manifests/.keep", "")
			write(t, name, text)
			startFile(t, name)
		case "yaml":
			write(t, name, text)
		case "sh":
			commands += runCommands(t, text)
		}
	}
	if commands < 8 {
		t.Errorf("the page has %d commands with curl", commands)
	}
}

// runCommands runs each command with curl in a script until its output is the comment below it. It returns the number
// of these commands.
func runCommands(t *testing.T, script string) (number int) {
	t.Helper()
	for _, command := range strings.Split("\n"+script, "\ncurl ")[1:] {
		command, comment, _ := strings.Cut("curl "+command, "\n# ")
		want := strings.TrimSpace(comment)
		fixture.Eventually(t, command, func() error {
			output, err := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
			if got := strings.TrimSpace(string(output)); err != nil || got != want {
				return errors.Join(err, fmt.Errorf("the output is %q, want %q", got, want))
			}
			return nil
		})
		number++
	}
	return number
}
