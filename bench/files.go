package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// product selects the files of a commit that become part of the binary, as pathspecs of git.
var product = []string{"--", "*.go", ":!*_test.go", ":!bench", ":!test"}

// recipe is a commit that added two annotations with a setting each, and their ConfigMap keys. It shows which files
// change for a new annotation, according to the steps in CONTRIBUTING.
const recipe = "a6709cf"

// countFiles compares the number of files that the commit recipe changed by hand with the bars: for a setting, and for
// a ConfigMap key with the meaning of an annotation. If the clone lacks this commit, nothing is measured.
func countFiles(ctx context.Context, _ options, _ string, _ io.Writer) ([]bar, error) {
	if _, err := git(ctx, "cat-file", "-e", recipe+"^{commit}"); err != nil {
		measured := "this clone lacks the commit " + recipe
		return []bar{{Work: "Go files by hand for a setting", Bar: "at most 4", Measured: measured}}, nil
	}
	names, err := git(ctx, append([]string{"show", "--name-only", "--format=", recipe}, product...)...)
	if err != nil {
		return nil, err
	}
	settings, keys := 0, 0
	for name := range strings.FieldsSeq(names) {
		if strings.Contains(name, "/configmap/") {
			keys++
		} else {
			settings++
		}
	}
	of := func(work string, files, maximum int) bar {
		measured := fmt.Sprintf("%d in %s", files, recipe)
		return held(bar{Work: "Go files by hand for " + work, Bar: fmt.Sprintf("at most %d", maximum),
			Measured: measured},
			files <= maximum)
	}
	return []bar{of("a setting", settings, 4), of("a key with the meaning of an annotation", keys, 1)}, nil
}
