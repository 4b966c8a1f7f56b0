package pattern

import (
	"fmt"
	"strings"
)

// Texts are whole texts and patterns, as the values of nginx's map are: an entry is a text in any case, or behind ~ a pattern, or behind ~* one
// in any case. A backslash in front stands for none of that. It is immutable; nil has nothing.
type Texts struct {
	whole    map[string]struct{}
	patterns []*Pattern
}

// NewTexts reads entries. All patterns together may have the size of those of a host.
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
		if size += p.size; size > MostOfHost {
			return nil, fmt.Errorf("the regular expressions are too large together: they stand for more than %d instructions", MostOfHost)
		}
		t.patterns = append(t.patterns, p)
	}
	return t, nil
}

// Has says whether a text is one of the texts, or has one of the patterns in it, or takes too long to search: it is for what guards. Each
// pattern has a budget of its own, since many of them are no fault of who sent the text.
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
