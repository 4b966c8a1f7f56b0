// Samecode checks that two commits differ only in comments and formatting. It compares the Go tokens of each file that
// differs between the commits. Comments with a meaning for tools, such as //go:build, are compared like code. To run
// it, use `make same-code FROM=COMMIT`.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	from := flag.String("from", "", "the earlier commit")
	to := flag.String("to", "HEAD", "the later commit")
	dir := flag.String("dir", ".", "a folder of the repository")
	flag.Parse()
	if err := os.Chdir(*dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := run(os.Stdout, *from, *to); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run compares the commits from and to. It returns an error that lists the files whose code differs. If no code
// differs, it prints the number of compared files to out.
func run(out io.Writer, from, to string) error {
	if from == "" {
		return errors.New("usage: make same-code FROM=COMMIT")
	}
	changed, err := git("diff", "--name-status", "--no-renames", from, to, "--", "*.go")
	if err != nil {
		return err
	}
	count := 0
	var faults []error
	for line := range strings.Lines(string(changed)) {
		status, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		count++
		if status != "M" {
			faults = append(faults, fmt.Errorf("%s: the file exists in one of the commits only", name))
			continue
		}
		if err := compare(from, to, name); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) == 0 {
		fmt.Fprintf(out, "%d Go files changed between %s and %s, and no code\n", count, from, to)
	}
	return errors.Join(faults...)
}

// compare compares the code of a file in two commits. It returns an error that contains the first differing line, or
// nil if the code is equal.
func compare(from, to, name string) error {
	before, err := tokensAt(from, name)
	if err != nil {
		return err
	}
	after, err := tokensAt(to, name)
	if err != nil {
		return err
	}
	return difference(name, before, after)
}

// difference compares two lists of tokens. It returns an error that contains the first differing token, or nil if the
// lists are equal.
func difference(name string, before, after []piece) error {
	for i := range max(len(before), len(after)) {
		switch {
		case i >= len(after):
			return fmt.Errorf("%s: %q, which was in line %d, is gone", name, before[i].text, before[i].line)
		case i >= len(before):
			return fmt.Errorf("%s:%d: %q is new", name, after[i].line, after[i].text)
		case before[i].text != after[i].text:
			return fmt.Errorf("%s:%d: %q was %q", name, after[i].line, after[i].text, before[i].text)
		}
	}
	return nil
}

// piece is one Go token, together with its line number.
type piece struct {
	text string
	line int
}

// comma is the value of piece.text for a comma.
const comma = ", "

// tokensAt returns the tokens of a file in the given commit. Comments are omitted.
func tokensAt(commit, name string) ([]piece, error) {
	source, err := git("show", commit+":"+name)
	if err != nil {
		return nil, err
	}
	return tokens(name, source)
}

// tokens returns the tokens of a Go file. Comments are omitted, except comments with a meaning for tools. It returns an
// error if the file is not valid Go.
func tokens(name string, source []byte) ([]piece, error) {
	var faults scanner.ErrorList
	file := token.NewFileSet().AddFile(name, -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, faults.Add, scanner.ScanComments)
	var all []piece
	for {
		at, kind, literal := s.Scan()
		switch {
		case kind == token.EOF:
			return all, faults.Err()
		case kind == token.COMMENT && !isDirective(literal):
		case kind == token.COMMENT:
			// The explanation after //nolint has no meaning for tools, so leave it out.
			directive, _, _ := strings.Cut(literal, " //")
			all = append(all, piece{directive, file.Line(at)})
		case kind == token.SEMICOLON:
			// A semicolon may be written in the file, or inserted by Go at the end of a line. Treat both alike, because
			// the difference is only formatting.
			all = append(all, piece{";", file.Line(at)})
		default:
			if kind == token.RPAREN || kind == token.RBRACE {
				all = withoutSeparator(all)
			}
			all = append(all, piece{kind.String() + " " + literal, file.Line(at)})
		}
	}
}

// withoutSeparator removes a comma or a semicolon at the end of a list of tokens. It is called before a closing bracket
// is added. Go requires a separator before a closing bracket only if the bracket is on its own line, so its presence is
// only a matter of formatting.
func withoutSeparator(all []piece) []piece {
	if n := len(all) - 1; n >= 0 && (all[n].text == ";" || all[n].text == comma) {
		return all[:n]
	}
	return all
}

// isDirective reports whether a comment has a meaning for the compiler or for another tool.
func isDirective(comment string) bool {
	return slices.ContainsFunc([]string{"//go:", "//nolint", "//export ", "// +build"}, func(prefix string) bool {
		return strings.HasPrefix(comment, prefix)
	})
}

func git(arguments ...string) ([]byte, error) {
	command := exec.Command("git", arguments...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return output, nil
}
