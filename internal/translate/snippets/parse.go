package snippets

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// MaxBytes is the maximum length of nginx configuration, in bytes. Parse returns an error if it is longer.
const MaxBytes = 64 << 10

const (
	// maxBlocks is the maximum number of blocks. It also bounds the nesting depth.
	maxBlocks = 1000
	// maxWord is nginx's limit for the length of a name or an argument in bytes.
	maxWord = 4096
)

// Directive is one nginx directive.
type Directive struct {
	// Name is the name as written in the configuration. nginx only knows lower-case names.
	Name string
	// Args are the arguments of the directive, without quotes and escapes.
	Args []string
	// Line is the line number in the configuration, starting at 1.
	Line int
	// Block holds the directives between braces. It is nil if the directive ends with a semicolon.
	Block []Directive
}

var (
	errTooLong = fmt.Errorf("the text is longer than %d bytes: shorten it", MaxBytes)
	errBlocks  = fmt.Errorf("the text has more than %d blocks: use fewer conditions and locations", maxBlocks)
	errLua     = errors.New("the text contains Lua code: use a handler chain (annotation k8singress.io/chains)")
	// errUTF8 is the error for other bytes, which would not survive the JSON configuration.
	errUTF8 = errors.New("the text is not valid UTF-8: save it with this encoding")
)

// lua matches the names of OpenResty directives that contain Lua code. They are rejected, because the end of Lua code
// cannot be found without parsing it.
var lua = regexp.MustCompile(`(?i)^[a-z_]+_by_lua(_block|_file)?$`)

// Parse parses nginx configuration exactly as nginx does. It does not check whether directives exist, where they are
// allowed, and how many arguments they have. An error contains the number of the invalid line.
func Parse(text string) ([]Directive, error) {
	switch {
	case len(text) > MaxBytes:
		return nil, errTooLong
	case strings.Count(text, "{") > maxBlocks:
		return nil, errBlocks
	case !utf8.ValidString(text):
		return nil, errUTF8
	}
	l := lexer{text: text, line: 1}
	directives, err := l.block(0)
	switch {
	case errors.Is(err, errLua):
		return nil, &lineError{l.line, err}
	case err != nil:
		return nil, &lineError{l.line, fmt.Errorf("the text is not valid nginx configuration: %w", err)}
	}
	return directives, nil
}

// lineError is an error in one line of nginx configuration.
type lineError struct {
	line   int
	reason error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.reason) }

// lexer reads nginx configuration as nginx's function ngx_conf_read_token does.
type lexer struct {
	text string
	// at is the index of the next character, and line is its line number.
	at, line int
}

// block reads directives up to the end of a block, or up to the end of the text if depth is 0.
func (l *lexer) block(depth int) ([]Directive, error) {
	all := []Directive{}
	for {
		words, line, end, err := l.statement()
		switch {
		case err != nil:
			return nil, err
		case end == 0 && depth > 0:
			return nil, errors.New(
				`the text ends inside a block: add "}", or quotes around an argument that contains "{"`)
		case end == '}' && depth == 0:
			return nil, errors.New(`unexpected "}": remove it, or add the "{" in front of it`)
		case end == 0, end == '}':
			return all, nil
		}
		d := Directive{Name: words[0], Args: words[1:], Line: line}
		if end == '{' {
			if d.Block, err = l.block(depth + 1); err != nil {
				return nil, err
			}
		}
		all = append(all, d)
	}
}

// statement reads the words of one directive, and the character behind them: a semicolon or an opening brace. line is
// the line of the first word. At the end of a block, there are no words, and end is a closing brace. At the end of the
// text, end is 0.
func (l *lexer) statement() (words []string, line int, end byte, err error) {
	for {
		l.skipSpace()
		if l.at == len(l.text) {
			if words != nil {
				return nil, 0, 0, errors.New(`the text ends inside a directive: add ";"`)
			}
			return nil, 0, 0, nil
		}
		c := l.text[l.at]
		if special := c == ';' || c == '{' || c == '}'; special {
			switch unexpected := (c == '}') == (words != nil); {
			case unexpected && c == '}':
				return nil, 0, 0, errors.New(`unexpected "}": add ";" in front of it`)
			case unexpected:
				return nil, 0, 0, fmt.Errorf("unexpected %q: remove it, or add a directive in front of it", string(c))
			}
			l.at++
			return words, line, c, nil
		}
		if words == nil {
			line = l.line
		}
		word, err := l.word()
		switch {
		case err != nil:
			return nil, 0, 0, err
		case words == nil && lua.MatchString(word):
			return nil, 0, 0, errLua
		}
		words = append(words, word)
	}
}

// skipSpace skips white space and comments.
func (l *lexer) skipSpace() {
	comment := false
	for ; l.at < len(l.text); l.at++ {
		switch c := l.text[l.at]; {
		case c == '\n':
			l.line++
			comment = false
		case comment, isSpace(c):
		case c == '#':
			comment = true
		default:
			return
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// word reads a word with or without quotes. Quotes inside a word, and closing braces, have no special meaning.
func (l *lexer) word() (string, error) {
	start, quote := l.at, l.text[l.at]
	if quote == '"' || quote == '\'' {
		l.at++
		start++
	} else {
		quote = 0
	}
	l.skipWord(quote)
	word := l.text[start:l.at]
	switch {
	case len(word) > maxWord:
		return "", fmt.Errorf("an argument is longer than %d bytes: check the quotes", maxWord)
	case quote != 0 && l.at == len(l.text):
		return "", fmt.Errorf("the text ends inside an argument: add %c", quote)
	case quote != 0:
		if l.at++; l.at < len(l.text) && !strings.ContainsRune(" \t\r\n;{)", rune(l.text[l.at])) {
			return "", fmt.Errorf("unexpected %q after a quoted argument: write a space between them",
				l.text[l.at:l.at+1])
		}
	}
	return escapes.Replace(word), nil
}

// skipWord goes to the end of a word: to the closing quote or, if quote is 0, to white space, a semicolon, or a brace
// that does not belong to a variable in braces.
func (l *lexer) skipWord(quote byte) {
	afterDollar := false
	for ; l.at < len(l.text); l.at++ {
		c := l.text[l.at]
		switch {
		case c == '\\' && l.at+1 < len(l.text):
			l.at++
		case quote != 0 && c == quote:
			return
		case quote == 0 && (isSpace(c) || c == ';' || c == '{' && !afterDollar):
			return
		}
		if l.text[l.at] == '\n' {
			l.line++
		}
		afterDollar = c == '$' || c == '{' && afterDollar
	}
}

// escapes replaces the escape sequences that nginx knows. Other backslashes stay.
var escapes = strings.NewReplacer(`\"`, `"`, `\'`, `'`, `\\`, `\`, `\t`, "\t", `\r`, "\r", `\n`, "\n")
