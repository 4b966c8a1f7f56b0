package nginx

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Template is a parsed string that may contain nginx variables. It is immutable.
type Template struct {
	// parts contains literal text and names of variables alternately. The first and the last part are literal text,
	// which may be empty.
	parts []string
}

// Groups lists the variables $1 to $9, which stand for the capture groups of a regular expression.
var Groups = strings.Split("123456789", "")

// MaxVariables is the maximum number of variables in one template. It limits the memory of an expanded template,
// because a client may send tens of kilobytes as the value of each variable.
const MaxVariables = 64

// CheckVariables returns an error if text contains more than MaxVariables variables.
func CheckVariables(text string) error {
	if n := strings.Count(text, "$"); n > MaxVariables {
		return fmt.Errorf("the value has %d variables, and the limit is %d", n, MaxVariables)
	}
	return nil
}

// ParseTemplate parses text with variables of the form $name or ${name}. It returns an error if known returns false for
// the name of a variable, or if there are more than MaxVariables variables. If known is nil, every name is allowed.
func ParseTemplate(text string, known func(name string) bool) (*Template, error) {
	if err := CheckVariables(text); err != nil {
		return nil, err
	}
	t := &Template{}
	rest := text
	for {
		literal, behind, found := strings.Cut(rest, "$")
		t.parts = append(t.parts, literal)
		if !found {
			return t, nil
		}
		name, after, err := cutName(behind, known)
		if err != nil {
			return nil, err
		}
		t.parts = append(t.parts, name)
		rest = after
	}
}

// Literal returns the template that stands for text itself, even if it contains dollar signs.
func Literal(text string) *Template { return &Template{[]string{text}} }

var errSingleDollar = errors.New("a $ without a variable is not allowed, and nginx cannot escape it: remove the $")

// cutName parses the name of a variable at the start of s, which is the text after a dollar sign. rest is the text
// after the name.
func cutName(s string, known func(string) bool) (name, rest string, err error) {
	if inner, ok := strings.CutPrefix(s, "{"); ok {
		name, rest, ok = strings.Cut(inner, "}")
		if !ok {
			return "", "", fmt.Errorf("${%s has no closing brace", inner)
		}
	} else if s != "" && '1' <= s[0] && s[0] <= '9' {
		// A capture group has a number of one digit, so a second digit is literal text.
		name, rest = s[:1], s[1:]
	} else {
		end := strings.IndexFunc(s, func(r rune) bool { return !isNameRune(r) })
		if end < 0 {
			end = len(s)
		}
		name, rest = s[:end], s[end:]
	}
	if name == "" {
		return "", "", errSingleDollar
	}
	if !IsVariable(name) || known != nil && !known(name) {
		return "", "", fmt.Errorf("there is no variable $%s here", name)
	}
	return name, rest, nil
}

// IsVariable reports whether name can be the name of a variable.
func IsVariable(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) })
}

func isNameRune(r rune) bool {
	return r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// Split is a string that was split at its variables. It consists of Texts and Names alternately; the first and the last
// element are in Texts.
type Split struct{ Texts, Names []string }

// SplitTemplate splits a string at its variables, without checking their names. A dollar sign without a name is literal
// text.
func SplitTemplate(text string) Split {
	var s Split
	literal := ""
	for rest := text; ; {
		before, behind, found := strings.Cut(rest, "$")
		literal += before
		if !found {
			s.Texts = append(s.Texts, literal)
			return s
		}
		name, after, ok := cutAnyName(behind)
		if rest = after; !ok {
			literal += "$"
			continue
		}
		s.Texts, s.Names, literal = append(s.Texts, literal), append(s.Names, name), ""
	}
}

// Unknown lists the variable names in s for which known returns false, without duplicates.
func (s *Split) Unknown(known func(name string) bool) (names []string) {
	for _, name := range s.Names {
		if !known(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// cutAnyName parses a variable name at the start of s, which is the text after a dollar sign. rest is the text after
// the name. If there is no name, rest is s and ok is false.
func cutAnyName(s string) (name, rest string, ok bool) {
	if inner, braced := strings.CutPrefix(s, "{"); braced {
		name, rest, ok = strings.Cut(inner, "}")
		if ok = ok && IsVariable(name); ok {
			return name, rest, true
		}
		return "", s, false
	}
	end := strings.IndexFunc(s, func(r rune) bool { return !isNameRune(r) })
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:], end > 0
}

// Text returns the literal text of a template without variables. If the template has variables, ok is false.
func (t *Template) Text() (text string, ok bool) { return t.parts[0], len(t.parts) == 1 }

// Variables returns the names of the template's variables, in the order in which they occur.
func (t *Template) Variables() (all []string) {
	for i := 1; i < len(t.parts); i += 2 {
		all = append(all, t.parts[i])
	}
	return all
}

// Expand returns the text in which each variable is replaced with the value that lookup returns for it. It does not
// allocate if the template consists of a single variable.
func (t *Template) Expand(lookup func(name string) string) string {
	text, _ := t.ExpandWithin(math.MaxInt, lookup)
	return text
}

// ExpandWithin is like Expand, but ok is false if the text is longer than limit bytes. The text is then not built, so
// that it needs no memory.
func (t *Template) ExpandWithin(limit int, lookup func(name string) string) (text string, ok bool) {
	if len(t.parts) == 1 {
		return t.parts[0], len(t.parts[0]) <= limit
	}
	if len(t.parts) == 3 && t.parts[0] == "" && t.parts[2] == "" {
		text = lookup(t.parts[1])
		return text, len(text) <= limit
	}
	var values [MaxVariables]string
	size := 0
	for i, part := range t.parts {
		if i%2 == 1 {
			part = lookup(part)
			values[i/2] = part
		}
		size += len(part)
	}
	if size > limit {
		return "", false
	}
	var b strings.Builder
	b.Grow(size)
	for i, part := range t.parts {
		if i%2 == 1 {
			part = values[i/2]
		}
		b.WriteString(part)
	}
	return b.String(), true
}
