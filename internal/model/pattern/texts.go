package pattern

import (
	"fmt"
	"strings"
)

// Texts is a set of strings and patterns, in the syntax of nginx's map. An entry with the prefix "~" is a pattern, and
// an entry with the prefix "~*" is a pattern that ignores case. Any other entry is a string, which is compared ignoring
// case. A leading backslash is removed from a string, so that a string can start with "~". Texts is immutable. Nil is
// an empty set.
type Texts struct {
	whole    map[string]struct{}
	patterns []*Pattern
}

// NewTexts parses the entries of a set. It returns an error if a pattern is invalid, or if the total size of all
// patterns exceeds MaxHostSize.
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

// Has reports whether text is equal to a string in the set or matches one of the patterns. It also returns true if a
// search exceeds its budget, because Has is used to reject requests. Each pattern has its own budget, since the sender
// of the text is not responsible for the number of patterns.
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
