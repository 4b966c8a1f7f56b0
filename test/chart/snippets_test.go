package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// lintCommand matches the command in NOTES that says what happens with snippets.
var lintCommand = regexp.MustCompile(`(?m)^  (echo .* caddy k8singress lint .*)$`)

// snippetCase is an entry of testdata/snippets.yaml.
type snippetCase struct {
	Config values `json:"config"`
	// Closing and LeftOut are the names of directives in NOTES, by key. Unseen are the keys that close requests for
	// reasons which only the command finds.
	Closing map[string]string `json:"closing"`
	LeftOut map[string]string `json:"leftOut"`
	Unseen  []string          `json:"unseen"`
}

// TestSnippets checks which snippets the NOTES report as closing, and runs their command: the controller must report an
// error for the same snippets.
func TestSnippets(t *testing.T) {
	var cases []snippetCase
	readYAML(t, "testdata/snippets.yaml", &cases)
	for _, c := range cases {
		r := mustRender(t, values{"controller": values{"config": c.Config}})
		lint := runLint(t, r)
		for key := range c.Config {
			c.checkNotes(t, key, r.notes)
			want := c.Closing[key] != "" || slices.Contains(c.Unseen, key)
			if fails := regexp.MustCompile(`(?m)^error .* data\[` + key + `\]`).MatchString(lint); fails != want {
				t.Errorf("%s: it fails: %v, and lint prints\n%s", key, fails, lint)
			}
		}
	}
}

func (c *snippetCase) checkNotes(t *testing.T, key, notes string) {
	t.Helper()
	closing, leftOut := "", ""
	if found := regexp.MustCompile(`\n  controller\.config\.` + key + `\n.* clients: (.*); remove`).
		FindStringSubmatch(notes); found != nil {
		closing = found[1]
	}
	if found := regexp.MustCompile(`\nDirectives in ` + key + ` that are left out: (.*)\.\n`).
		FindStringSubmatch(notes); found != nil {
		leftOut = found[1]
	}
	if closing != c.Closing[key] || leftOut != c.LeftOut[key] {
		t.Errorf("%s: NOTES report %q, and leave out %q:\n%s", key, closing, leftOut, notes)
	}
}

// runLint runs the command in NOTES on the ConfigMap of a release.
func runLint(t *testing.T, r rendered) string {
	t.Helper()
	command := lintCommand.FindStringSubmatch(r.notes)
	if command == nil {
		t.Fatalf("there is no command in\n%s", r.notes)
	}
	folder := t.TempDir()
	for _, object := range r.objects(t) {
		if !has(object, values{"kind": "ConfigMap", "metadata": values{"name": "ingress-k8singress-controller"}}) {
			continue
		}
		text, err := yaml.Marshal(together(object, at([]string{"metadata", "namespace"}, "web")))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, "snippets.yaml"), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run := exec.CommandContext(t.Context(), "sh", "-c", command[1])
	run.Dir = folder
	run.Env = append(os.Environ(), "PATH="+filepath.Dir(controllerProgram(t))+":"+os.Getenv("PATH"))
	out, _ := run.CombinedOutput() // The exit status is 1 if there are errors.
	return string(out)
}

// TestIgnoredSnippets checks that NOTES name the snippets in the ConfigMap that the option "snippets ignore" turns off,
// and not what they contain.
func TestIgnoredSnippets(t *testing.T) {
	notes := mustRender(t, values{
		"controller": values{"config": values{"http-snippet": "auth_jwt x;"}},
		"k8singress": values{"options": values{"snippets": "ignore"}},
	}).notes
	if !strings.Contains(notes, "\n  k8singress.options.snippets, controller.config.http-snippet\n") ||
		strings.Contains(notes, "auth_jwt") || lintCommand.MatchString(notes) {
		t.Error(notes)
	}
}
