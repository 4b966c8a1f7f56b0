package variables

import (
	"errors"
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ascii"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// mapping is a compiled ir.Map. It searches a text as nginx does: first the text itself, then the longest mask of a
// host name, and then the regular expressions.
type mapping struct {
	exact map[string]*nginx.Template
	// below contains the masks *.NAME by NAME, and above the masks NAME.* by NAME.
	below, above map[string]*nginx.Template
	hostnames    bool
	patterns     []mapPattern
	fallback     *nginx.Template
}

type mapPattern struct {
	*pattern.Pattern
	value *nginx.Template
	// names are the names of the capture groups. hasGroups is true if the value contains a capture group.
	names     []string
	hasGroups bool
}

func newMapping(of *ir.Map) (func(string, *pattern.Budget) found, error) {
	m := &mapping{exact: make(map[string]*nginx.Template, len(of.Exact)), hostnames: of.Hostnames}
	var err error
	if m.fallback, err = nginx.ParseTemplate(of.Default, nil); err != nil {
		return nil, err
	}
	for text, value := range of.Exact {
		to, err := nginx.ParseTemplate(value, nil)
		if err == nil {
			err = m.add(Lower(text), to)
		}
		if err != nil {
			return nil, err
		}
	}
	for i := range of.Patterns {
		p, err := newMapPattern(&of.Patterns[i])
		if err != nil {
			return nil, err
		}
		m.patterns = append(m.patterns, p)
	}
	return m.find, nil
}

func newMapPattern(of *ir.MapPattern) (p mapPattern, err error) {
	compile := pattern.Compile
	if of.Fold {
		compile = pattern.CompileFold
	}
	if p.Pattern, err = compile(of.Pattern); err != nil {
		return p, err
	}
	if p.value, err = nginx.ParseTemplate(of.Value, nil); err != nil {
		return p, err
	}
	p.names = p.GroupNames()
	for _, name := range p.value.Variables() {
		p.hasGroups = p.hasGroups || '1' <= name[0] && name[0] <= '9'
		for _, group := range p.names {
			p.hasGroups = p.hasGroups || group == name
		}
	}
	return p, nil
}

// maxMask is the maximum length of a mask in bytes, which bounds the time of a search: only parts of a text that are as
// short are searched in the masks.
const maxMask = 255

var errConflict = errors.New("it occurs twice")

// add adds a text or a mask in lower case.
func (m *mapping) add(text string, value *nginx.Template) error {
	kind, name := exactText, text
	if m.hostnames {
		var err error
		if kind, name, err = readMask(text); err != nil {
			return err
		}
	}
	if kind&exactText != 0 && !insert(&m.exact, name, value) || kind&belowName != 0 && !insert(&m.below, name, value) ||
		kind&aboveName != 0 && !insert(&m.above, name, value) {
		return fmt.Errorf("%s: %w", nginx.Quote(text), errConflict)
	}
	return nil
}

func insert(to *map[string]*nginx.Template, name string, value *nginx.Template) bool {
	if (*to)[name] != nil {
		return false
	}
	if *to == nil {
		*to = map[string]*nginx.Template{}
	}
	(*to)[name] = value
	return true
}

// maskKind says what a mask matches: a name itself, names below it, or names that begin with it.
type maskKind uint8

const (
	exactText maskKind = 1 << iota
	belowName
	aboveName
)

// readMask reads a host name or a mask, as nginx does.
func readMask(text string) (kind maskKind, name string, err error) {
	stars := strings.Count(text, "*")
	if len(text) > maxMask || stars > 1 || strings.Contains(text, "..") {
		return 0, "", errors.New(nginx.Quote(text) + " is not the name of a host")
	}
	switch {
	case len(text) > 1 && text[0] == '.':
		kind, name = exactText|belowName, text[1:]
	case len(text) > 2 && strings.HasPrefix(text, "*."):
		kind, name = belowName, text[2:]
	case len(text) > 2 && strings.HasSuffix(text, ".*"):
		kind, name = aboveName, text[:len(text)-2]
	default:
		kind, name = exactText, text
	}
	if strings.Contains(name, "*") {
		return 0, "", errors.New(nginx.Quote(text) + " has an asterisk that is not its first or last label")
	}
	return kind, name, nil
}

func (m *mapping) find(text string, b *pattern.Budget) found {
	if m.hostnames {
		text = strings.TrimSuffix(text, ".")
	}
	low := Lower(text)
	value := m.exact[low]
	if value == nil && m.hostnames {
		value = m.mask(low)
	}
	if value != nil {
		return found{value: value}
	}
	// As in nginx, the expressions are not tried for an empty text.
	for i := 0; i < len(m.patterns) && text != ""; i++ {
		f, ok := m.patterns[i].find(text, b)
		if ok || f.failed != nil {
			return f
		}
	}
	return found{value: m.fallback}
}

func (p *mapPattern) find(text string, b *pattern.Budget) (f found, ok bool) {
	var result pattern.Found
	if p.hasGroups {
		f.subject, f.names = text, p.names
		f.groups, result = p.SearchGroups(text, b)
	} else {
		result = p.Search(text, b)
	}
	if result == pattern.Unknown {
		return found{failed: errSearch}, false
	}
	f.value = p.value
	return f, result == pattern.Yes
}

// mask returns the value of the longest mask for a name, or nil. Masks for the end of a name come first.
func (m *mapping) mask(name string) *nginx.Template {
	for rest := name; m.below != nil; {
		dot := strings.IndexByte(rest, '.')
		if dot < 0 {
			break
		}
		if rest = rest[dot+1:]; len(rest) <= maxMask && m.below[rest] != nil {
			return m.below[rest]
		}
	}
	begin := name[:min(len(name), maxMask+1)]
	for m.above != nil {
		dot := strings.LastIndexByte(begin, '.')
		if dot < 0 {
			break
		}
		if begin = begin[:dot]; m.above[begin] != nil {
			return m.above[begin]
		}
	}
	return nil
}

// Lower replaces upper-case ASCII letters by lower-case letters, as nginx does.
func Lower(text string) string {
	at := strings.IndexFunc(text, func(c rune) bool { return 'A' <= c && c <= 'Z' })
	if at < 0 {
		return text
	}
	low := []byte(text)
	for i := at; i < len(low); i++ {
		low[i] = ascii.Lower(low[i])
	}
	return string(low)
}
