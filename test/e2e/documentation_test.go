package e2e

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// reader follows the documentation in a folder with copies of charts/ and deploy/.
type reader struct {
	*cluster
	folder string
	// here replaces names in the documentation, in charts/ and in deploy/ by names of the test.
	here *strings.Replacer
}

// reader returns a reader. names are pairs of a documented name and a name of the test.
func (c *cluster) reader(names ...string) *reader {
	c.Helper()
	r := &reader{cluster: c, folder: c.TempDir(), here: strings.NewReplacer(names...)}
	r.copy("charts")
	r.copy("deploy")
	return r
}

// copy copies a folder of the repository, and replaces names.
func (r *reader) copy(folder string) {
	r.Helper()
	from := os.DirFS(filepath.Join("../..", folder))
	r.must(fs.WalkDir(from, ".", func(path string, entry fs.DirEntry, err error) error {
		to := filepath.Join(r.folder, folder, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		text, err := fs.ReadFile(from, path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, []byte(r.here.Replace(string(text))), 0o600)
	}))
}

// scripts returns the scripts below a heading of a page, up to the next heading of its level. It fails the test unless
// there are number of them.
func (r *reader) scripts(page, heading string, number int) (all []string) {
	r.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", page))
	r.must(err)
	_, section, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		r.Fatalf("%s has no %q", page, heading)
	}
	level, _, _ := strings.Cut(heading, " ")
	section, _, _ = strings.Cut(section, "\n"+level+" ")
	blocks := strings.Split(section, "```")
	for i := 1; i < len(blocks); i += 2 {
		if script, isShell := strings.CutPrefix(blocks[i], "sh\n"); isShell {
			all = append(all, script)
		}
	}
	if len(all) != number {
		r.Fatalf("%s has %d scripts below %s, want %d: %q", page, len(all), heading, number, all)
	}
	return all
}

// run runs a script, and returns what it says.
func (r *reader) run(script string) string {
	r.Helper()
	out, err := r.shell(r.Context(), script).CombinedOutput()
	if err != nil {
		r.logControllers()
		r.Fatalf("%s%v\n%s", script, err, out)
	}
	return string(out)
}

// atEnd runs a script when the test has ended, well or not.
func (r *reader) atEnd(script string) {
	r.Cleanup(func() {
		if out, err := r.shell(context.Background(), script).CombinedOutput(); err != nil {
			r.Errorf("%s%v\n%s", script, err, out)
		}
	})
}

func (r *reader) shell(ctx context.Context, script string) *exec.Cmd {
	shell := exec.CommandContext(ctx, "sh", "-ec", r.here.Replace(script))
	shell.Dir = r.folder
	programs := filepath.Dir(r.inside.Programs.Helm) + ":" + filepath.Dir(r.inside.Programs.Kubectl)
	shell.Env = append(r.helmEnvironment(), "PATH="+programs+":"+os.Getenv("PATH"))
	return shell
}

// kubectl fails the test if the command does.
func (c *cluster) kubectl(ctx context.Context, arguments ...string) {
	c.Helper()
	command := exec.CommandContext(ctx, c.inside.Programs.Kubectl, arguments...)
	command.Env = c.helmEnvironment()
	if out, err := command.CombinedOutput(); err != nil {
		c.Errorf("kubectl %v: %v\n%s", arguments, err, out)
	}
}
