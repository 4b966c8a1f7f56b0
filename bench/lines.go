package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// product is what of a commit is counted: what is built into the program. It is in the words of git.
var product = []string{"--", "*.go", ":!*_test.go", ":!bench", ":!test"}

// compareLines holds the product to as many lines of Go as the other commit has.
func compareLines(ctx context.Context, o options, _ string, _ io.Writer) ([]bar, error) {
	now, err := lines(ctx, "")
	if err != nil {
		return nil, err
	}
	before, err := lines(ctx, o.against)
	if err != nil {
		return nil, err
	}
	most := "at most " + thousands(float64(before)) + ", as in " + o.against
	return []bar{held(bar{Work: "lines of Go without tests, bench and test", Bar: most, Measured: thousands(float64(now))}, now <= before)}, nil
}

// lines counts the lines of the product in a commit, or in this folder if none is given.
func lines(ctx context.Context, commit string) (int, error) {
	arguments := []string{"grep", "-c", "", commit}
	if commit == "" {
		arguments = []string{"grep", "--untracked", "-c", ""}
	}
	counts, err := git(ctx, append(arguments, product...)...)
	if err != nil {
		return 0, err
	}
	total := 0
	for file := range strings.Lines(counts) {
		count, err := strconv.Atoi(strings.TrimSpace(file[strings.LastIndexByte(file, ':')+1:]))
		if err != nil {
			return 0, fmt.Errorf("counting the lines of %q: %w", file, err)
		}
		total += count
	}
	return total, nil
}

// recipe is a file that came with the settings which show what CONTRIBUTING says of adding some: two annotations with a
// setting each, and their keys of the ConfigMap.
const recipe = "internal/annotations/cookies.go"

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
		if strings.HasPrefix(name, "internal/configmap/") {
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
