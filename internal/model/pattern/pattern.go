// Package pattern compiles regular expressions from Kubernetes objects and limits their cost. Any author of an Ingress
// can write an expression, and any client can send the string to search. The length of an expression does not limit its
// compiled size, because {0,1000} stands for a thousand copies. The time of a search is proportional to the compiled
// size of the expression times the length of the string.
//
// Therefore the compiled size of each expression is limited before it is compiled, the total size is limited for each
// host and each namespace, and each search has a limited number of steps.
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

	"github.com/k8singress/k8singress/internal/model/ascii"
	"github.com/k8singress/k8singress/internal/model/shrinking"
)

const (
	// MaxBytes is the maximum length of an expression in bytes.
	MaxBytes = 1 << 10
	// MaxSize is the maximum size of one compiled pattern, in instructions. An expression of MaxBytes plain characters
	// does not exceed it. Envoy already logs a warning for a tenth of this size.
	MaxSize = 1500
	// MaxHostSize is the maximum total size of all patterns of a host, in instructions. One instruction takes about 50
	// bytes of memory and one microsecond to compile.
	MaxHostSize = 50_000
	// MaxNamespaceSize is the maximum total size of all patterns of a namespace, in instructions.
	MaxNamespaceSize = 200_000
	// MaxNamesSize is the maximum total size, in instructions, of all patterns for host names in a namespace. Every
	// requested name that matches no other host is compared with all these patterns, even if the name belongs to
	// another namespace. The limit is low, so that the budget that NewNameBudget returns suffices for the patterns of
	// several namespaces.
	MaxNamesSize = 500
	// MaxNameLength is the maximum length of a requested host name. Patterns are not searched in longer names, because
	// no valid host name is longer.
	MaxNameLength = 253
)

// Pattern is an RE2 regular expression in which $ has the meaning that it has in nginx: it also matches before a line
// feed at the end of the string. A Pattern is immutable and safe for concurrent use.
type Pattern struct {
	// text is the expression as it was written, with its flags.
	text       string
	expression *regexp.Regexp
	size       int
	// literals is nil if no text is excluded before the search.
	literals *literals
	// groupNames are the names that GroupNames returns.
	groupNames []string
	// program returns the compiled program for searches that count their steps. Few patterns need it, so it is compiled
	// on first use.
	program func() *syntax.Prog
}

// Compile returns a pattern that can match any part of a string. The error tells the author how to fix the expression.
func Compile(text string) (*Pattern, error) { return compile("", text) }

// CompileFold is like Compile, but ignores case.
func CompileFold(text string) (*Pattern, error) { return compile("(?i)", text) }

// CompilePath compiles the regular expression of a path. As in ingress-nginx, the pattern is anchored at the start and
// ignores case.
func CompilePath(path string) (*Pattern, error) { return compile(ofPath, path) }

// ofPath is the prefix that CompilePath adds to an expression. It has the effect of ingress-nginx's location ~*
// "^path".
const ofPath = "(?i)^"

// CompileMarked compiles the expression after the prefix "~", or "~*" to ignore case, as in nginx's map and
// server_name. A text without this prefix is not a pattern: CompileMarked then returns marked = false and no error.
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

// compile returns the pattern for an expression. If a pattern with the same flags and text is still in use, compile
// returns this pattern instead of a new one. This saves memory, because many Ingresses have the same few paths.
func compile(flags, text string) (*Pattern, error) {
	whole := flags + text
	if p := compiled.get(whole); p != nil {
		return p, nil
	}
	tree, size, err := parse(flags, text)
	if err != nil {
		return nil, err
	}
	searched := tree.String()
	expression, err := regexp.Compile(searched)
	if err != nil {
		return nil, err
	}
	prefix, _ := expression.LiteralPrefix()
	p := &Pattern{text: whole, expression: expression, size: size, literals: newLiterals(tree, prefix),
		program: sync.OnceValue(func() *syntax.Prog { return programOf(searched) })}
	for _, name := range expression.SubexpNames() {
		p.groupNames = append(p.groupNames, strings.ToLower(name))
	}
	compiled.keep(whole, p)
	return p, nil
}

// patterns is a cache of the patterns in use. It holds weak pointers, so that unused patterns are freed. The keys are
// the regular expressions, including flags. It is safe for concurrent use.
type patterns struct {
	mu  sync.Mutex
	all shrinking.Map[string, weak.Pointer[Pattern]]
}

var compiled patterns

// get returns the pattern with the given text, or nil if no such pattern is in use.
func (c *patterns) get(text string) *Pattern {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all.Get(text).Value()
}

func (c *patterns) keep(text string, p *Pattern) {
	pointer := weak.Make(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.Set(text, pointer)
	runtime.AddCleanup(p, func(text string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.all.Get(text) == pointer {
			// The cache entry belongs to the pattern that was freed, and not to a newer pattern with the same text. So
			// delete the entry.
			c.all.Delete(text)
		}
	}, text)
}

// programOf compiles an expression that is known to be valid.
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

// Size returns the size of the compiled pattern in instructions, or the error that Compile would return. It is cheaper
// than compiling.
func Size(text string) (int, error) {
	_, size, err := parse("", text)
	return size, err
}

// FoldSize is like Size, for an expression that is passed to CompileFold.
func FoldSize(text string) (int, error) {
	_, size, err := parse("(?i)", text)
	return size, err
}

// PathSize is like Size, for an expression that is passed to CompilePath.
func PathSize(path string) (int, error) {
	_, size, err := parse(ofPath, path)
	return size, err
}

// parse checks an expression. It returns its syntax tree, with the $ of nginx, and the size of the compiled pattern in
// instructions.
func parse(flags, text string) (*syntax.Regexp, int, error) {
	if len(text) > MaxBytes {
		return nil, 0, fmt.Errorf("the regular expression is %d bytes long, and the limit is %d", len(text), MaxBytes)
	}
	tree, err := syntax.Parse(flags+text, syntax.Perl)
	if err != nil {
		return nil, 0, fmt.Errorf("%q is not an RE2 regular expression: %w%s", text, err, advice(err))
	}
	matchFinalLineFeed(tree)
	size := sizeOf(tree)
	if size > MaxSize {
		return nil, 0,
			fmt.Errorf(
				"the regular expression is too large: it compiles to %d instructions, and the limit is %d. A "+
					"repetition such as {0,1000} is compiled once for each repetition, so write * or + instead. A "+
					"Unicode class such as \\pL needs many instructions", size,
				MaxSize)
	}
	return tree, size, nil
}

// matchFinalLineFeed replaces each $ in an expression by \n?\z, because PCRE's $ also matches before a line feed at the
// end of the string. Without this, a client could pass the rule "location ~ \.php$ { deny all; }" with the path
// /x.php%0a. In contrast to PCRE, the line feed is a part of the match, and of a capture group that encloses the $.
func matchFinalLineFeed(re *syntax.Regexp) {
	if re.Op == syntax.OpEndText && re.Flags&syntax.WasDollar != 0 {
		end := &syntax.Regexp{Op: syntax.OpEndText}
		lineFeed := &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{'\n'}}
		optional := &syntax.Regexp{Op: syntax.OpQuest, Sub: []*syntax.Regexp{lineFeed}}
		*re = syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{optional, end}}
		return
	}
	for _, sub := range re.Sub {
		matchFinalLineFeed(sub)
	}
}

// Prefix returns a common prefix, ignoring case, of all paths that a path pattern can match. It returns "/" if no
// longer prefix is known.
func Prefix(path string) string {
	const every = "/"
	// Parse the expression without the flag that ignores case: with this flag, the parser would replace the letters of
	// the prefix with their first case variant in Unicode.
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

// MayBegin reports whether a path may start with prefix, ignoring case. prefix is a result of the function Prefix. The
// result is exact for ASCII. For other characters MayBegin returns true, because their case variants may differ in
// length.
func MayBegin(path, prefix string) bool {
	for i := range len(prefix) {
		switch {
		case i == len(path):
			return false
		case path[i] >= utf8.RuneSelf || prefix[i] >= utf8.RuneSelf:
			return true
		case path[i] != prefix[i] && ascii.Lower(path[i]) != ascii.Lower(prefix[i]):
			return false
		}
	}
	return true
}
