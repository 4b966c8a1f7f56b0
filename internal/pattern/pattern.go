// Package pattern compiles the regular expressions of objects, and bounds what they cost. Whoever may write an Ingress may write
// one, and everybody may send what it is searched in: the text of an expression says nothing about its size, since {0,1000}
// stands for a thousand copies, and the time of a search is the product of that size and of the length of what is searched.
//
// So the size of each expression is bounded before it is compiled, the sum of the sizes of a host and of a namespace is bounded
// where they are joined, and a search has a number of steps that it may take.
package pattern

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"
	"weak"
)

const (
	// MostBytes is how long the text of a pattern may be.
	MostBytes = 1 << 10
	// MostSize is the size that one pattern may have: the longest text of plain characters has it, and Envoy warns of a tenth.
	MostSize = 1500
	// MostOfHost is the size that all patterns of a host may have together. A size of 1 takes some 50 bytes of memory, and a microsecond
	// to compile.
	MostOfHost = 50_000
	// MostOfNamespace is the size that all patterns of a namespace may have together.
	MostOfNamespace = 200_000
	// MostOfNames is the size that all patterns of a namespace that are names of hosts may have together. Each of them is searched in every name
	// that no host has, whichever namespace it is of: a budget for names is enough for those of several namespaces.
	MostOfNames = 500
	// MostOfName is the length of a name that is searched: no host has a longer one.
	MostOfName = 253
)

// Pattern is a regular expression of the kind RE2. It is immutable, and for all goroutines.
type Pattern struct {
	expression *regexp.Regexp
	size       int
	// program is for searches whose steps are counted; few patterns ever need one.
	program func() *syntax.Prog
}

// Compile returns a pattern that is searched anywhere in a text, or says how to mend it.
func Compile(text string) (*Pattern, error) { return compile("", text) }

// CompileFold is Compile, without regard to case.
func CompileFold(text string) (*Pattern, error) { return compile("(?i)", text) }

// CompilePath returns the pattern of a path: as in ingress-nginx, it stands at the beginning of a path, in any case.
func CompilePath(path string) (*Pattern, error) { return compile(ofPath, path) }

// ofPath is what ingress-nginx writes as location ~* "^path".
const ofPath = "(?i)^"

// CompileMarked compiles what stands behind "~", as nginx's map and server_name have it; "~*" is without regard to case. marked is false
// for a text without the mark, which is no pattern.
func CompileMarked(text string) (p *Pattern, marked bool, err error) {
	expression, marked := strings.CutPrefix(text, "~")
	if !marked {
		return nil, false, nil
	}
	if folded, ok := strings.CutPrefix(expression, "*"); ok {
		p, err = CompileFold(folded)
	} else {
		p, err = Compile(expression)
	}
	return p, true, err
}

// compile returns the pattern that there is for a text, as long as anybody has it: the paths of many Ingresses are the same few texts.
func compile(flags, text string) (*Pattern, error) {
	whole := flags + text
	if p := compiled.get(whole); p != nil {
		return p, nil
	}
	size, err := parse(flags, text)
	if err != nil {
		return nil, err
	}
	expression, err := regexp.Compile(whole)
	if err != nil {
		return nil, err
	}
	p := &Pattern{expression: expression, size: size, program: sync.OnceValue(func() *syntax.Prog { return programOf(whole) })}
	compiled.keep(whole, p)
	return p, nil
}

// patterns are those that anybody has, by their texts. It is for any goroutine.
type patterns struct {
	mu  sync.Mutex
	all map[string]weak.Pointer[Pattern]
}

var compiled = &patterns{all: map[string]weak.Pointer[Pattern]{}}

// get returns nil for one that nobody has.
func (c *patterns) get(text string) *Pattern {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[text].Value()
}

func (c *patterns) keep(text string, p *Pattern) {
	pointer := weak.Make(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[text] = pointer
	runtime.AddCleanup(p, func(text string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.all[text] == pointer {
			// No other pattern has the text meanwhile.
			delete(c.all, text)
		}
	}, text)
}

// programOf compiles what has been compiled before.
func programOf(text string) *syntax.Prog {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		panic(err)
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		panic(err)
	}
	return program
}

// Size returns the size that a pattern has when it is compiled, in instructions, or the error of Compile. It costs less than
// that.
func Size(text string) (int, error) {
	return parse("", text)
}

// FoldSize is Size for CompileFold.
func FoldSize(text string) (int, error) { return parse("(?i)", text) }

// PathSize is Size for CompilePath.
func PathSize(path string) (int, error) {
	return parse(ofPath, path)
}

// parse returns the size of an expression.
func parse(flags, text string) (int, error) {
	if len(text) > MostBytes {
		return 0, fmt.Errorf("the regular expression is %d bytes long, and may be %d", len(text), MostBytes)
	}
	tree, err := syntax.Parse(flags+text, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("%q is not a regular expression of the kind RE2: %w", text, err)
	}
	size := sizeOf(tree)
	if size > MostSize {
		return 0, fmt.Errorf("the regular expression is too large: it stands for %d instructions, and may for %d. A repetition such as "+
			"{0,1000} counts as often as it may repeat, so write * or + in its place, and a class of Unicode such as \\pL counts for many", size,
			MostSize)
	}
	return size, nil
}

// Prefix returns a text that every path begins with, in any case, in which the pattern of a path is found; it is a slash where
// that cannot be told.
func Prefix(path string) string {
	const every = "/"
	// Without regard to case, letters are those that come first in Unicode.
	tree, err := syntax.Parse("^"+path, syntax.Perl)
	if err != nil || tree.Op != syntax.OpConcat || tree.Sub[0].Op != syntax.OpBeginText {
		return every
	}
	prefix := ""
	for _, part := range tree.Sub[1:] {
		if part.Op != syntax.OpLiteral {
			break
		}
		prefix += string(part.Rune)
	}
	if prefix == "" {
		return every
	}
	return prefix
}

// MayBegin says whether a path may begin with a text that Prefix has returned. It is exact for ASCII; other letters may have cases that
// are no letters of the same length, and so it is true.
func MayBegin(path, prefix string) bool {
	for i := range len(prefix) {
		switch {
		case i == len(path):
			return false
		case path[i] >= utf8.RuneSelf || prefix[i] >= utf8.RuneSelf:
			return true
		case path[i] != prefix[i] && lower(path[i]) != lower(prefix[i]):
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
