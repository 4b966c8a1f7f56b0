package snippets

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// ifBlock interprets a condition with its block.
func (r *reader) ifBlock(d *Directive) error {
	of, err := r.condition(d.Args)
	if err != nil {
		return err
	}
	step := &ir.If{Condition: of}
	if err := r.step(ir.Step{If: step}); err != nil {
		return err
	}
	block := &scope{context: "if in " + r.scope.context}
	r.conditions = append(r.conditions, condition{step, block})
	r.level(d.Block, block)
	step.Steps = block.steps
	return nil
}

// condition interprets the arguments of if, as nginx's function ngx_http_rewrite_if_condition does.
func (r *reader) condition(args []string) (c ir.Condition, err error) {
	words, ok := withoutParentheses(args)
	switch {
	case !ok || len(words) == 0:
		return c, errors.New("the condition is not in parentheses: write if ($variable = text) { ... }")
	case slices.ContainsFunc(words, func(word string) bool { return word == "&&" || word == "||" }):
		return c, errors.New("nginx has no && and ||: set a variable in one if for each comparison, and compare the " +
			"variable")
	case isFileTest(words[0]):
		return c, errors.New("conditions on files are not supported, because no files are served: remove the if")
	case len(words) != 1 && len(words) != 3 || len(words[0]) < 2 || words[0][0] != '$':
		return c, errors.New("write a condition as ($variable), ($variable = text) or ($variable ~ expression)")
	}
	c.Variable = words[0][1:]
	if err := r.checkVariable(&c.Variable); err != nil {
		return c, err
	}
	if c.OfAddress = r.http.ofAddress(c.Variable); len(words) == 1 {
		return c, nil
	}
	c.Operator, c.Value = ir.Operator(words[1]), words[2]
	switch c.Operator {
	case ir.Equal, ir.NotEqual:
		err = r.checkTemplate(&c.Value)
	case ir.Matches, ir.NotMatches:
		err = r.checkPattern(c.Value, false)
	case ir.MatchesFold, ir.NotMatchesFold:
		err = r.checkPattern(c.Value, true)
	default:
		err = fmt.Errorf("%s is not one of the operators =, !=, ~, ~*, !~ and !~*", nginx.Quote(words[1]))
	}
	return c, err
}

// withoutParentheses removes the parentheses of a condition, which may be words of their own.
func withoutParentheses(args []string) (words []string, ok bool) {
	words = append(words, args...)
	last := len(words) - 1
	if !strings.HasPrefix(words[0], "(") || !strings.HasSuffix(words[last], ")") || last == 0 && len(words[0]) < 2 {
		return nil, false
	}
	words[0] = words[0][1:]
	words[last] = words[last][:len(words[last])-1]
	if args[last] == ")" {
		words = words[:last]
	}
	if len(words) > 0 && args[0] == "(" {
		words = words[1:]
	}
	return words, true
}

func isFileTest(word string) bool {
	word = strings.TrimPrefix(word, "!")
	return len(word) == 2 && word[0] == '-' && strings.IndexByte("fdex", word[1]) >= 0
}
