package pattern

import (
	"math"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/k8singress/k8singress/internal/model/pools"
)

// A Budget limits the total cost of all pattern searches for one request. It must not be used by several goroutines at
// the same time.
type Budget struct {
	// steps is the number of steps that remain for searches of type search, which count their steps. plain is the cost
	// that remains for searches with package regexp, which is faster for short strings but does not count steps. The
	// cost of such a search is its maximum: the size of the pattern times the length of the string.
	steps, plain int
}

const (
	// maxSteps is the initial value of Budget.steps. This many steps take one or two milliseconds on one core, about as
	// long as a search that reaches the match limit of PCRE. An ordinary pattern takes eight steps for each byte of a
	// path. If the pattern and the path start with different letters, a search takes only a few steps for the whole
	// path.
	maxSteps = 250_000
	// maxPlain is the initial value of Budget.plain. Searches of this cost take some tenths of a millisecond.
	maxPlain = 1 << 16
)

// NewBudget returns the budget for one request.
func NewBudget() Budget { return Budget{maxSteps, maxPlain} }

// NewNameBudget returns the budget for all searches in one host name. It is always sufficient for the patterns of the
// first four namespaces, since an instruction takes at most three steps for each character.
func NewNameBudget() Budget { return Budget{4 * 3 * MaxNamesSize * (MaxNameLength + 1), maxPlain} }

// Found is the result of a search.
type Found int

const (
	// No means that the pattern does not match.
	No Found = iota
	// Yes means that the pattern matches.
	Yes
	// Unknown means that the budget was used up before the search ended. Access control must reject the request in this
	// case.
	Unknown
)

// Search returns Yes if the pattern matches a part of text, otherwise No. It uses up a part of the budget, and returns
// Unknown if the budget does not suffice.
func (p *Pattern) Search(text string, b *Budget) Found {
	if p.literals.exclude(text, &b.plain) {
		return No
	}
	if cost := p.size * (len(text) + 1); cost <= b.plain {
		b.plain -= cost
		if p.expression.MatchString(text) {
			return Yes
		}
		return No
	}
	s := searches.Get()
	found := s.Value().run(p.program(), text, &b.steps)
	s.Release()
	return found
}

// Find reports whether the pattern matches a part of text. It is like Search with a budget of its own. It returns false
// if this budget does not suffice.
func (p *Pattern) Find(text string) bool {
	b := NewBudget()
	return p.Search(text, &b) == Yes
}

// Submatch returns the positions of the match and its capture groups, as regexp.FindStringSubmatchIndex does. It
// returns nil if Find returns false.
func (p *Pattern) Submatch(text string) []int {
	if p.size*(len(text)+1) > maxPlain && !p.Find(text) {
		return nil
	}
	return p.expression.FindStringSubmatchIndex(text)
}

// SearchGroups is like Search. If the pattern matches, it also returns the positions of the match and its capture
// groups, as regexp.FindStringSubmatchIndex does.
func (p *Pattern) SearchGroups(text string, b *Budget) (groups []int, found Found) {
	if p.literals.exclude(text, &b.plain) {
		return nil, No
	}
	if cost := p.size * (len(text) + 1); cost <= b.plain {
		b.plain -= cost
	} else if found := p.Search(text, b); found != Yes {
		return nil, found
	}
	if groups = p.expression.FindStringSubmatchIndex(text); groups == nil {
		return nil, No
	}
	return groups, Yes
}

// GroupNames returns the names of the capture groups in lower case, because they become nginx variables, whose case is
// ignored. They have the order of the groups. The first element stands for the whole match. The name of a group without
// a name is empty. The caller must not modify the result.
func (p *Pattern) GroupNames() []string { return p.groupNames }

// String returns the regular expression with its flags.
func (p *Pattern) String() string { return p.text }

// The type search runs a compiled regular expression on a string. Like package regexp for long strings, it follows all
// alternatives (threads) in parallel, so each instruction is visited at most once for each character. Each visit counts
// as one step.
type search struct {
	now, next queue
	stack     []uint32
}

var searches = pools.New[search]("pattern: search", nil, nil).Poison((*search).poison)

// poison overwrites the memory of a search with the number of an instruction that no program contains. Builds that
// check the ownership of pooled values call it when a search is released.
func (s *search) poison() {
	for _, of := range [...][]uint32{s.now.sparse, s.now.dense, s.next.sparse, s.next.dense, s.stack} {
		of = of[:cap(of)]
		for i := range of {
			of[i] = math.MaxUint32
		}
	}
}

// queue is a set of instructions in the order in which they were added.
type queue struct{ sparse, dense []uint32 }

func (q *queue) reset(size int) {
	if len(q.sparse) < size {
		q.sparse, q.dense = make([]uint32, size), make([]uint32, 0, size)
	}
	q.dense = q.dense[:0]
}

func (q *queue) add(pc uint32) bool {
	if i := q.sparse[pc]; int(i) < len(q.dense) && q.dense[i] == pc {
		return false
	}
	q.sparse[pc] = uint32(len(q.dense))
	q.dense = append(q.dense, pc)
	return true
}

func (s *search) run(p *syntax.Prog, text string, left *int) Found {
	s.now.reset(len(p.Inst))
	s.next.reset(len(p.Inst))
	anchored, found := p.StartCond()&syntax.EmptyBeginText != 0, No
	before := rune(-1)
	for at := 0; ; {
		if len(s.now.dense) == 0 && (found == Yes || anchored && at > 0) {
			return found
		}
		here, width := runeAt(text, at)
		if found == No && (at == 0 || !anchored) {
			*left -= s.follow(p, &s.now, uint32(p.Start), context{before, here})
		}
		after, _ := runeAt(text, at+width)
		if s.step(p, here, context{here, after}, left) {
			found = Yes
		}
		if *left < 0 {
			return Unknown
		}
		if width == 0 {
			return found
		}
		at, before = at+width, here
		s.now, s.next = s.next, s.now
		s.next.dense = s.next.dense[:0]
	}
}

// context holds the characters before and after a position in the string. -1 means the start or the end of the string.
type context struct{ before, after rune }

func runeAt(text string, at int) (rune, int) {
	if at >= len(text) {
		return -1, 0
	}
	if c := text[at]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(text[at:])
}

// step reads one character. It advances all threads, which are the alternatives that can still match, and reports
// whether one of them has matched. The threads after the match are dropped, because the first alternative takes
// precedence.
func (s *search) step(p *syntax.Prog, here rune, next context, left *int) bool {
	for _, pc := range s.now.dense {
		i := &p.Inst[pc]
		if i.Op == syntax.InstMatch {
			return true
		}
		*left--
		if here >= 0 && takes(i, here) {
			*left -= s.follow(p, &s.next, i.Out, next)
		}
	}
	return false
}

// The result of the function takes is true if the instruction i matches the character r. It is false if the instruction
// does not match characters at all.
func takes(i *syntax.Inst, r rune) bool {
	switch i.Op {
	case syntax.InstRune1:
		return r == i.Rune[0]
	case syntax.InstRuneAny:
		return true
	case syntax.InstRuneAnyNotNL:
		return r != '\n'
	case syntax.InstRune:
		return i.MatchRunePos(r) >= 0
	default:
		return false
	}
}

// The method follow adds the instruction pc to a queue, and all instructions that can be reached from it without
// reading a character. They are added in order of precedence. follow returns the number of visited instructions.
func (s *search) follow(p *syntax.Prog, to *queue, pc uint32, at context) int {
	visits := 0
	for s.stack = append(s.stack[:0], pc); len(s.stack) > 0; {
		pc, s.stack = s.stack[len(s.stack)-1], s.stack[:len(s.stack)-1]
		visits++
		if !to.add(pc) {
			continue
		}
		switch i := &p.Inst[pc]; i.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			s.stack = append(s.stack, i.Arg, i.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(i.Arg)&^syntax.EmptyOpContext(at.before, at.after) == 0 {
				s.stack = append(s.stack, i.Out)
			}
		case syntax.InstCapture, syntax.InstNop:
			s.stack = append(s.stack, i.Out)
		default:
			// All other instructions read a character or end the search, so no further instruction can be reached from
			// here.
		}
	}
	return visits
}
