package pattern

import (
	"regexp/syntax"
)

const (
	// runesOfInstruction is how many runes of a class take the memory of one instruction.
	runesOfInstruction = 10
	// enough ends the addition: what is larger is refused whatever it is.
	enough = 1 << 30
)

// sizeOf returns how many instructions an expression becomes, without compiling it, and never too few: 11 bytes may stand for
// thousands, and ten of those beside each other for millions.
func sizeOf(tree *syntax.Regexp) int { return 2 + instructions(tree) }

func instructions(re *syntax.Regexp) int {
	of := 0
	for _, sub := range re.Sub {
		of = min(of+instructions(sub), enough)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return max(len(re.Rune), 1)
	case syntax.OpCharClass:
		return 1 + len(re.Rune)/runesOfInstruction
	case syntax.OpCapture:
		return of + 2
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		// A star of what may be empty is a question mark and a plus.
		return of + 2
	case syntax.OpAlternate, syntax.OpConcat:
		return of + len(re.Sub)
	case syntax.OpRepeat:
		return repeated(of, re.Min, re.Max)
	default:
		return 1
	}
}

// repeated is the size of that many copies, each but the first of which may be left out.
func repeated(of, least, most int) int {
	copies := max(most, least, 1)
	return min((of+2)*copies, enough)
}
