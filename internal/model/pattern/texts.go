package pattern

import (
	"fmt"
	"strings"
)

// Texts is a set of whole texts and patterns with the syntax of nginx's map. An entry is a text in any case, a pattern
// after "~", or a pattern that ignores case after "~*". A leading backslash makes an entry a text. Texts is immutable.
// Nil is an empty set.
type Texts struct {
	whole    map[string]struct{}
	patterns []*Pattern
}

// NewTexts parses entries. Their patterns together may have the size MaxHostSize.
func NewTexts(entries []string) (*Texts, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	t, size := &Texts{whole: map[string]struct{}{}}, 0
	for _, entry := range entries {
		text, isPattern := strings.CutPrefix(entry, "~")
		if !isPattern {
			t.whole[strings.ToLower(strings.TrimPrefix(text, `\`))] = struct{}{}
			continue
		}
		compile := Compile
		if folded, ok := strings.CutPrefix(text, "*"); ok {
			text, compile = folded, CompileFold
		}
		p, err := compile(text)
		if err != nil {
			return nil, err
		}
		if size += p.size; size > MaxHostSize {
			return nil,
				fmt.Errorf("the regular expressions are too large together: they compile to more than %d instructions",
					MaxHostSize)
		}
		t.patterns = append(t.patterns, p)
	}
	return t, nil
}

// Has reports whether a text is in the set, contains one of the patterns, or takes too long to search. It is meant for
// access control. Each pattern has its own budget, since the sender of the text is not responsible for the number of
// patterns.
func (t *Texts) Has(text string) bool {
	if t == nil {
		return false
	}
	if _, ok := t.whole[strings.ToLower(text)]; ok {
		return true
	}
	for _, p := range t.patterns {
		if b := NewBudget(); p.Search(text, &b) != No {
			return true
		}
	}
	return false
}
