// Package snippets parses the nginx configuration that users write into annotations and the ConfigMap. The
// configuration is never executed. It is harmless if its directives cannot keep a request from the backend and change
// nothing that a backend may trust. Harmless configuration may be ignored. Other configuration may restrict access, so
// objects that contain it must be rejected.
package snippets

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"
)

// MaxBytes is the maximum length of a text, in bytes. Parse returns an error for a longer text.
const MaxBytes = 64 << 10

// maxBlocks is the maximum number of blocks in a text. The time for parsing grows with the square of their depth.
const maxBlocks = 1000

// Directive is one nginx directive.
type Directive struct {
	// Name is the name as it is written in the text. nginx knows only lower-case names.
	Name string
	// Args are the arguments without their quotes.
	Args []string
	// Line is the line number in the text, starting at 1.
	Line int
	// Block holds the directives between braces. It is nil for a directive that ends with a semicolon.
	Block []Directive
}

var (
	errTooLong = fmt.Errorf("the text is longer than %d bytes", MaxBytes)
	errBlocks  = fmt.Errorf("the text has more than %d blocks", maxBlocks)
	errLua     = errors.New("the text contains Lua code")
)

// lua matches the directives of OpenResty. They contain Lua code, and a parser of nginx configuration does not know
// where that ends.
var lua = regexp.MustCompile(`(?i)_by_lua`)

// Parse parses nginx configuration. It checks neither the names of directives, nor their contexts, nor the number of
// their arguments. The error names the line that is invalid.
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
			parsed, err = nil, fmt.Errorf("reading the text failed: %v", value)
		}
	}()
	payload, err := crossplane.Parse(theFile, &crossplane.ParseOptions{
		Open: func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil },
		Glob: func(string) ([]string, error) { return nil, nil },
		// Included files are not opened. The parser continues after an error, because its lexer is a goroutine that
		// ends only when it has read the whole text.
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

// theFile is the file name that the parser gets for the text. It only appears in errors, and plain removes it from
// them.
const theFile = "snippet"

// plain returns a parser's error without the file name.
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
