package pattern

import (
	"errors"
	"regexp"
	"regexp/syntax"
)

// advices tell how to write what RE2 does not have. The part of an expression that RE2 refuses matches the field part.
var advices = []struct {
	part *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`^\(\?<?[=!]`), "RE2 cannot look ahead or behind: match the texts that you want instead, or, " +
		"in a snippet, exclude texts by an if with the operator !~, or by an earlier line of a map"},
	{regexp.MustCompile(`^\\[1-9kg]`), "RE2 cannot refer to an earlier group: write out the texts that may repeat, " +
		"as in (aa|bb)"},
	{regexp.MustCompile(`[*+?}]\+$`), "RE2 has no possessive quantifiers, and needs none: remove the last +"},
	{regexp.MustCompile(`^\(\?>`), "RE2 has no atomic groups, and needs none: write (?:"},
	{regexp.MustCompile(`^\(\?'`), "write the name of a group as in (?<name>"},
	{regexp.MustCompile(`^\(\?#`), "RE2 has no comments: remove it"},
	{regexp.MustCompile(`^\(\?[(|R0-9&]`), "RE2 has no conditions and no recursion: write alternatives, as in (a|b)"},
	{regexp.MustCompile(`^\(\?[a-z-]*x`), "RE2 has no flag x: remove it, and the spaces in the expression"},
	{regexp.MustCompile(`^\\[hH]`), `write [ \t] for a space or a tab, and [^ \t] for other characters`},
	{regexp.MustCompile(`^\\Z`), `write \z`},
	{regexp.MustCompile(`^\\K`), "RE2 cannot leave a part out of the match: use a group"},
	{regexp.MustCompile(`^\\R`), `write \r?\n`},
}

// advice returns the end of a message about an expression that RE2 refuses with err, or "" if there is no advice.
func advice(err error) string {
	var invalid *syntax.Error
	if !errors.As(err, &invalid) {
		return ""
	}
	for _, a := range advices {
		if a.part.MatchString(invalid.Expr) {
			return " (" + a.text + ")"
		}
	}
	return ""
}
