package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// product is what of a commit is counted: what is built into the program. It is in the words of git.
var product = []string{"--", "*.go", ":!*_test.go", ":!bench", ":!test"}

// recipe is a file that came with the settings which show what CONTRIBUTING says of adding some: two annotations with a
// setting each, and their keys of the ConfigMap.
const recipe = "internal/translate/annotations/cookies.go"

// countFiles holds the commit of the recipe to the files that are written by hand for a setting, and for a key of the ConfigMap
// with the meaning of an annotation.
func countFiles(ctx context.Context, _ options, _ string, _ io.Writer) ([]bar, error) {
	commit, err := git(ctx, "log", "--diff-filter=A", "--format=%h", "-1", "--", recipe)
	if err != nil || commit == "" {
		return []bar{{Work: "Go files by hand for a setting", Bar: "at most 4", Measured: "no commit has added " + recipe}}, err
	}
	names, err := git(ctx, append([]string{"show", "--name-only", "--format=", commit}, product...)...)
	if err != nil {
		return nil, err
	}
	settings, keys := 0, 0
	for name := range strings.FieldsSeq(names) {
		if strings.HasPrefix(name, "internal/translate/configmap/") {
			keys++
		} else {
			settings++
		}
	}
	of := func(work string, files, most int) bar {
		measured := fmt.Sprintf("%d in %s", files, commit)
		return held(bar{Work: "Go files by hand for " + work, Bar: fmt.Sprintf("at most %d", most), Measured: measured}, files <= most)
	}
	return []bar{of("a setting", settings, 4), of("a key with the meaning of an annotation", keys, 1)}, nil
}
