// Package snippets parses the nginx configuration that users write into annotations and the ConfigMap. The controller
// never executes this configuration. Configuration is harmless if it cannot prevent a request from reaching the
// backend, and changes nothing that a backend may trust. Harmless configuration may be ignored. All other configuration
// may restrict access, so requests that it would apply to must be rejected.
package snippets

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"
)

// MaxBytes is the maximum length of nginx configuration, in bytes. Parse returns an error if it is longer.
const MaxBytes = 64 << 10

// maxBlocks is the maximum number of blocks. It bounds the time for parsing, which grows with the square of the nesting
// depth.
const maxBlocks = 1000

// Directive is one nginx directive.
type Directive struct {
	// Name is the name as written in the configuration. nginx only knows lower-case names.
	Name string
	// Args are the arguments of the directive, without quotes.
	Args []string
	// Line is the line number in the configuration, starting at 1.
	Line int
	// Block holds the directives between braces. It is nil if the directive ends with a semicolon.
	Block []Directive
}

var (
	errTooLong = fmt.Errorf("the text is longer than %d bytes", MaxBytes)
	errBlocks  = fmt.Errorf("the text has more than %d blocks", maxBlocks)
	errLua     = errors.New("the text contains Lua code")
)

// lua matches OpenResty directives that contain Lua code. They are rejected, because a parser for nginx configuration
// cannot find the end of the Lua code.
var lua = regexp.MustCompile(`(?i)_by_lua`)

// Parse parses nginx configuration. It does not check whether directives exist, where they are allowed, and how many
// arguments they have. An error contains the number of the invalid line.
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
		// SingleFile prevents the parser from opening included files. StopParsingOnError must be false, because the
		// lexer runs in a goroutine that ends only after it has read the whole text.
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

// theFile is the file name that is passed to the parser. The parser only uses this name in errors, and the function
// plain removes it from them.
const theFile = "snippet"

// plain removes the file name from an error of the parser.
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
