package pattern

import (
	"math"
	"regexp/syntax"
	"slices"
	"unicode/utf8"

	"github.com/k8singress/k8singress/internal/model/ascii"
)

// literals are texts of which each match of a pattern contains at least one, ignoring case. A search for them takes a
// small part of the time that a search for the pattern takes. Most texts contain no literal: for example, few clients
// are robots that a condition on $http_user_agent names.
type literals struct {
	// byFirst lists the literals, in lower case, by their first bytes. at[c] is the index in byFirst for the byte c, or
	// none.
	byFirst [][]string
	at      [256]uint8
}

const (
	// minLiteral is the minimum length of a literal in bytes. Shorter literals occur in most texts.
	minLiteral = 3
	// maxFiltered is the maximum length of a text in which literals are searched. In longer texts, this search would
	// use up too much of the budget.
	maxFiltered = 4 << 10
	// none is the index for bytes with which no literal begins.
	none = math.MaxUint8
)

// newLiterals returns the literals of an expression. prefix is the prefix that package regexp knows of its matches.
// newLiterals returns nil if the expression requires no literals, or if the search is as fast without them: package
// regexp searches the prefix itself, and tries an expression that begins with ^ only at the start of the text.
func newLiterals(tree *syntax.Regexp, prefix string) *literals {
	all := required(tree)
	if prefix != "" || all == nil || tree.Op == syntax.OpConcat && tree.Sub[0].Op == syntax.OpBeginText {
		return nil
	}
	l := &literals{}
	for i := range l.at {
		l.at[i] = none
	}
	for _, text := range all {
		first := text[0]
		if l.at[first] == none {
			l.at[first], l.at[upper(first)] = uint8(len(l.byFirst)), uint8(len(l.byFirst))
			l.byFirst = append(l.byFirst, nil)
		}
		l.byFirst[l.at[first]] = append(l.byFirst[l.at[first]], text)
	}
	return l
}

// required returns texts in lower case of which each match of an expression contains at least one, ignoring case. It
// returns nil if it knows none.
func required(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return literal(re.Rune)
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		return requiredByOne(re.Sub)
	case syntax.OpAlternate:
		return requiredByAll(re.Sub)
	default:
		// Other expressions also match texts that have no literal in common.
	}
	return nil
}

// requiredByAll returns the texts that all alternatives together require.
func requiredByAll(alternatives []*syntax.Regexp) (all []string) {
	for _, sub := range alternatives {
		texts := required(sub)
		if texts == nil {
			return nil
		}
		all = append(all, texts...)
	}
	return all
}

// requiredByOne returns the longest texts that one of the expressions in a sequence requires.
func requiredByOne(sequence []*syntax.Regexp) (best []string) {
	shortest := func(texts []string) int {
		least := math.MaxInt
		for _, text := range texts {
			least = min(least, len(text))
		}
		return least
	}
	for _, sub := range sequence {
		if texts := required(sub); texts != nil && (best == nil || shortest(texts) > shortest(best)) {
			best = texts
		}
	}
	return best
}

// literal returns the text of these characters in lower case. It returns nil if the text is too short, or contains
// characters other than ASCII.
func literal(of []rune) []string {
	if len(of) < minLiteral || slices.ContainsFunc(of, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return nil
	}
	text := make([]byte, 0, len(of))
	for _, r := range of {
		text = append(text, ascii.Lower(byte(r)))
	}
	return []string{string(text)}
}

// exclude reports whether the pattern cannot match text, because text contains no literal. It uses up a part of left,
// and returns false if left does not suffice, or if text contains characters other than ASCII, since some of them are
// case variants of ASCII letters. l may be nil.
func (l *literals) exclude(text string, left *int) bool {
	if l == nil || len(text) > maxFiltered {
		return false
	}
	*left -= len(text)
	for i := range len(text) {
		c := text[i]
		if c >= utf8.RuneSelf || *left < 0 {
			return false
		}
		if l.at[c] == none {
			continue
		}
		for _, each := range l.byFirst[l.at[c]] {
			*left -= len(each)
			if begins(text[i:], each) {
				return false
			}
		}
	}
	return true
}

// begins reports whether text begins with a literal, ignoring case.
func begins(text, literal string) bool {
	if len(text) < len(literal) {
		return false
	}
	for i := range len(literal) {
		if ascii.Lower(text[i]) != literal[i] {
			return false
		}
	}
	return true
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}
