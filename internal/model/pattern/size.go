package pattern

import (
	"regexp/syntax"
)

const (
	// runesOfInstruction is the number of runes in a character class that take as much memory as one instruction.
	runesOfInstruction = 10
	// The constant enough is the upper bound of all sizes that are computed here. It prevents an integer overflow.
	// Expressions of this size are rejected anyway.
	enough = 1 << 30
)

// sizeOf returns an upper bound for the number of instructions of the compiled expression. It must be checked before
// compiling, because a repetition that is 11 bytes long can compile to thousands of instructions, and a sequence of ten
// such repetitions to millions.
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
		// An expression such as (x?)* is compiled to a plus inside a question mark, because its operand can match the
		// empty string. Therefore two instructions are counted.
		return of + 2
	case syntax.OpAlternate, syntax.OpConcat:
		return of + len(re.Sub)
	case syntax.OpRepeat:
		return repeated(of, re.Min, re.Max)
	default:
		return 1
	}
}

// repeated returns the size of a repetition such as x{2,5}. The parameter of is the size of x. The compiled expression
// contains one copy of x for each possible occurrence, and additional instructions for optional copies.
func repeated(of, minimum, maximum int) int {
	copies := max(maximum, minimum, 1)
	return min((of+2)*copies, enough)
}
