// Package snippets reads texts of nginx configuration that users put into annotations and into the ConfigMap. The texts are read and never
// run. A text whose directives cannot keep a request from the backend, and change nothing that a backend may trust, is harmless: it may
// have no effect. Any other text may be a guard, so whoever names it has to be refused.
package snippets

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"
)

// MaxBytes is the size of the longest text that is read, in bytes. A longer one is an error.
const MaxBytes = 64 << 10

// maxBlocks bounds the braces of a text. The parser's work grows with the square of the depth of blocks.
const maxBlocks = 1000

// Directive is one nginx directive.
type Directive struct {
	// Name is as the text has it: nginx knows lower-case names only.
	Name string
	// Args are the arguments without their quotes.
	Args []string
	// Line is the number of the line in the text, from 1.
	Line int
	// Block holds the directives between braces. It is nil for a directive that ends with a semicolon.
	Block []Directive
}

var (
	errTooLong = fmt.Errorf("the text is longer than %d bytes", MaxBytes)
	errBlocks  = fmt.Errorf("the text has more than %d blocks", maxBlocks)
	errLua     = errors.New("the text has Lua code in it")
)

// lua finds the directives of OpenResty. What follows them is no text of nginx, and no parser of nginx configuration knows where it ends.
var lua = regexp.MustCompile(`(?i)_by_lua`)

// Parse reads a text of nginx configuration. It checks neither the names of directives, nor their contexts, nor the number of their
// arguments. The error names the line where the text is no configuration.
func Parse(text string) (parsed []Directive, err error) {
	switch {
	case len(text) > MaxBytes:
		return nil, errTooLong
	case strings.Count(text, "{") > maxBlocks:
		return nil, errBlocks
	case lua.MatchString(text):
		return nil, errLua
	}
	defer func() {
		if value := recover(); value != nil {
			parsed, err = nil, fmt.Errorf("reading the text fails: %v", value)
		}
	}()
	payload, err := crossplane.Parse(theFile, &crossplane.ParseOptions{
		Open: func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil },
		Glob: func(string) ([]string, error) { return nil, nil },
		// Files that the text includes are not opened. The parser reads on behind an error, because its lexer is a goroutine that ends
		// only when all has been read.
		SingleFile: true, StopParsingOnError: false, SkipDirectiveContextCheck: true, SkipDirectiveArgsCheck: true,
	})
	if err != nil {
		return nil, plain(err)
	}
	for _, e := range payload.Errors {
		return nil, plain(e.Error)
	}
	for i := range payload.Config {
		parsed = append(parsed, convert(payload.Config[i].Parsed)...)
	}
	return parsed, nil
}

// theFile is the name that the parser has for the text. It appears in errors only, where plain removes it.
const theFile = "snippet"

// plain returns a parser's error without the name of the file.
func plain(err error) error {
	var e *crossplane.ParseError
	if !errors.As(err, &e) {
		return err
	}
	if e.Line == nil {
		return errors.New(e.What)
	}
	return fmt.Errorf("line %d: %s", *e.Line, e.What)
}

func convert(all crossplane.Directives) []Directive {
	directives := make([]Directive, 0, len(all))
	for _, d := range all {
		if d.IsComment() {
			continue
		}
		to := Directive{Name: d.Directive, Args: d.Args, Line: d.Line}
		if d.Block != nil {
			to.Block = convert(d.Block)
		}
		directives = append(directives, to)
	}
	return directives
}
