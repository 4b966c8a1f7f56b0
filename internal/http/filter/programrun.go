package filter

import (
	"errors"
	"net/http"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// programRun is the state of a program that runs for a request.
type programRun struct {
	program *program
	x       *exchange.Exchange
	// directives are the directives that apply after the steps so far, or nil.
	directives *exchange.Directives
	// rerouted is true if a route must be searched for the path that a rewrite has set.
	rerouted bool
	// response is the response with which the program ends, or nil. status is its status and text its expanded text.
	response *programResponse
	text     string
	// budget limits the searches with regular expressions. left is the number of bytes by which templates may still be
	// expanded.
	budget pattern.Budget
	left   int
}

const (
	// maxExpanded is the maximum total size in bytes of the values that the steps of a program set or compare for a
	// request. A step can double the value of a variable, so a few lines could need any amount of memory.
	maxExpanded = 1 << 20
	// maxValue is the maximum size in bytes of each of these values.
	maxValue = 1 << 16
)

var (
	errEmptyStep = errors.New("a step of the program is empty")
	errTooLarge  = exchange.FailUndecided(http.StatusInternalServerError,
		errors.New("a program sets a value that is too large"))
	errSearchTooLong = exchange.FailUndecided(http.StatusBadRequest,
		errors.New("the request is too long for the regular expressions of a program"))
)

// expand expands a template. It returns an error if the program sets too many bytes.
func (r *programRun) expand(t *nginx.Template, lookup func(string) string) (string, error) {
	value, ok := t.ExpandWithin(min(r.left, maxValue), lookup)
	if !ok {
		return "", errTooLarge
	}
	r.left -= len(value)
	return value, nil
}

// run runs the steps. ended is true if the steps that follow them must not run.
func (r *programRun) run(steps []step) (ended bool, err error) {
	for i := range steps {
		switch s := &steps[i]; {
		case s.set != nil:
			var value string
			if value, err = r.expand(s.set.value, r.x.Variable); err == nil {
				r.x.SetVariable(s.set.name, value)
			}
		case s.branch != nil:
			ended, err = r.runBranch(s.branch)
		case s.rewrite != nil:
			ended, err = s.rewrite.apply(r)
		case s.answer != nil:
			r.response = s.answer
			if r.text, err = r.expand(s.answer.text, s.answer.lookup(r.x)); err == nil {
				err = r.x.VariablesFailed()
			}
			return true, err
		case s.breaks:
			r.endRewrite()
			return true, nil
		}
		if err == nil {
			err = r.x.VariablesFailed()
		}
		if ended || err != nil {
			return true, err
		}
	}
	return false, nil
}

// endRewrite ends the steps as nginx's directive break does: the route stays the same, and the rest of the
// configuration does not redirect or rewrite the request. In the program of a host, it only ends the steps.
func (r *programRun) endRewrite() {
	if !r.program.server {
		r.x.RewriteEnded, r.rerouted = true, false
	}
}

func (r *programRun) runBranch(b *branch) (ended bool, err error) {
	holds, err := b.holds(r)
	if err == nil {
		err = r.x.VariablesFailed()
	}
	if !holds || err != nil {
		return false, err
	}
	r.directives = b.directives
	return r.run(b.steps)
}

// condition is a compiled ir.Condition. If value and search are nil, the condition is true unless the variable is empty
// or "0".
type condition struct {
	variable func(*exchange.Exchange) string
	value    *nginx.Template
	search   *matcher
	negated  bool
}

func newCondition(of *ir.Condition) (c condition, err error) {
	c.variable = exchange.Reader(of.Variable)
	switch of.Operator {
	case ir.IsTrue:
	case ir.Equal, ir.NotEqual:
		c.negated = of.Operator == ir.NotEqual
		c.value, err = nginx.ParseTemplate(of.Value, nil)
	case ir.Matches, ir.NotMatches:
		c.negated = of.Operator == ir.NotMatches
		c.search, err = newMatcher(of.Value, pattern.Compile)
	case ir.MatchesFold, ir.NotMatchesFold:
		c.negated = of.Operator == ir.NotMatchesFold
		c.search, err = newMatcher(of.Value, pattern.CompileFold)
	default:
		err = errors.New("unknown operator")
	}
	if !nginx.IsVariable(of.Variable) {
		err = errors.New("no variable has this name")
	}
	return c, err
}

func (c *condition) holds(r *programRun) (bool, error) {
	value := c.variable(r.x)
	switch {
	case c.value != nil:
		other, err := r.expand(c.value, r.x.Variable)
		return (value == other) != c.negated, err
	case c.search != nil:
		found, err := c.search.matches(r, value)
		return found != c.negated, err
	}
	return value != "" && value != "0", nil
}

// matcher is a regular expression of a program.
type matcher struct {
	pattern *pattern.Pattern
	// names are the names of the capture groups. hasNames is true if a group has a name.
	names    []string
	hasNames bool
}

func newMatcher(text string, compile func(string) (*pattern.Pattern, error)) (*matcher, error) {
	p, err := compile(text)
	if err != nil {
		return nil, err
	}
	m := &matcher{pattern: p, names: p.GroupNames()}
	for _, name := range m.names {
		if name == "" {
			continue
		}
		if err := exchange.CheckSettable(name); err != nil {
			return nil, err
		}
		m.hasNames = true
	}
	return m, nil
}

// matches reports whether the regular expression matches a part of text. If it does, its groups become the variables $1
// to $9. The error is errSearchTooLong if the search would take too long, since the outcome may decide about access.
func (m *matcher) matches(r *programRun, text string) (bool, error) {
	if !m.hasNames && !r.program.usesGroups {
		found := m.pattern.Search(text, &r.budget)
		return found == pattern.Yes, searchError(found)
	}
	groups, found := m.pattern.SearchGroups(text, &r.budget)
	if found == pattern.Yes {
		r.x.SetGroups(text, groups, m.names)
	}
	return found == pattern.Yes, searchError(found)
}

func searchError(found pattern.Found) error {
	if found == pattern.Unknown {
		return errSearchTooLong
	}
	return nil
}
