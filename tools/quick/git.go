package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"path"
	"regexp"
	"strings"
)

// base returns the commit with which the checkout is compared. On a branch, it is the newest commit that main or
// origin/main also has. On main, it is the newest commit that origin/main also has or, without a remote, the
// parent of HEAD.
func (r repository) base() (string, error) {
	branches := []string{"main", "origin/main"}
	if branch, err := r.git("symbolic-ref", "--quiet", "--short", "HEAD"); err == nil && branch == "main" {
		branches = branches[1:]
	}
	for _, branch := range branches {
		if commit, err := r.git("merge-base", "HEAD", branch); err == nil {
			return commit, nil
		}
	}
	return r.git("rev-parse", "HEAD~1")
}

// changedSince returns the files that differ from a commit: in later commits, uncommitted, and untracked.
func (r repository) changedSince(commit string) ([]string, error) {
	// With -z, git does not quote names, and ends each with NUL.
	tracked, err := r.git("diff", "-z", "--name-only", "--no-renames", "--relative", commit)
	if err != nil {
		return nil, err
	}
	untracked, err := r.git("ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	return without(union(strings.Split(tracked, "\x00"), strings.Split(untracked, "\x00")), ""), nil
}

var generateLine = regexp.MustCompile(`^([^\x00]+)\x00.*-run \^(Test\w+)\$`)

// generatedBy returns the tests of the main module that check generated files, by package. The same tests, with
// -update, write the files, so the lines with go:generate name them.
func (r repository) generatedBy() (map[string][]string, error) {
	found, err := r.git("grep", "-z", "--untracked", "-I", "^//go:generate go test ", "--", "*.go")
	if err != nil {
		return nil, err
	}
	tests := map[string][]string{}
	for line := range strings.Lines(found) {
		if match := generateLine.FindStringSubmatch(line); match != nil {
			if module, pattern, ok := r.packageIn(path.Dir(match[1])); ok && module == "." {
				tests[pattern] = append(tests[pattern], match[2])
			}
		}
	}
	return tests, nil
}

// git runs git and returns its output without the last line break.
func (r repository) git(arguments ...string) (string, error) {
	command := exec.Command("git", arguments...)
	command.Dir = r.root
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSuffix(string(output), "\n"), nil
}
