package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// product is what of a commit is counted: what is built into the program. It is in the words of git.
var product = []string{"--", "*.go", ":!*_test.go", ":!bench", ":!test"}

// recipe is the commit that added two annotations, with a setting each, and their keys of the ConfigMap. It shows which
// files CONTRIBUTING's steps for an annotation touch.
const recipe = "a6709cf"

// countFiles compares the number of files that the commit recipe changed by hand with the bars for a setting, and for a
// key of the ConfigMap that has the meaning of an annotation. A clone without that commit measures nothing.
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
	of := func(work string, files, most int) bar {
		measured := fmt.Sprintf("%d in %s", files, recipe)
		return held(bar{Work: "Go files by hand for " + work, Bar: fmt.Sprintf("at most %d", most), Measured: measured},
			files <= most)
	}
	return []bar{of("a setting", settings, 4), of("a key with the meaning of an annotation", keys, 1)}, nil
}
