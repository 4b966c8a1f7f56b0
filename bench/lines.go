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
