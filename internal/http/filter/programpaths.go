package filter

import (
	"errors"
	"net/http"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// pathGuard rejects requests whose path an endpoint may interpret as another path, for which a program would decide
// differently.
type pathGuard struct {
	// ofPath and ofTarget are the conditions on the path, and on the request target, that decide whether the program
	// responds. If always is true, the path also decides in other ways, so all ambiguous paths are rejected.
	ofPath, ofTarget []pathCondition
	always           bool
}

// pathCondition compares the path or the request target with a regular expression. If search is nil, it compares with
// text.
type pathCondition struct {
	search *pattern.Pattern
	text   string
}

// newPathGuard returns the pathGuard for a program, or nil if the path does not decide whether the program responds.
func newPathGuard(of *ir.Program) (*pathGuard, error) {
	conditions, all := of.PathConditions()
	if !all {
		return &pathGuard{always: true}, nil
	}
	if conditions == nil {
		return nil, nil
	}
	g := &pathGuard{}
	for i := range conditions {
		c, err := newPathCondition(&conditions[i])
		if err != nil {
			return nil, err
		}
		if conditions[i].Variable == "request_uri" {
			g.ofTarget = append(g.ofTarget, c)
		} else {
			g.ofPath = append(g.ofPath, c)
		}
	}
	return g, nil
}

func newPathCondition(of *ir.Condition) (c pathCondition, err error) {
	switch of.Operator {
	case ir.Matches, ir.NotMatches:
		c.search, err = pattern.Compile(of.Value)
	case ir.MatchesFold, ir.NotMatchesFold:
		c.search, err = pattern.CompileFold(of.Value)
	default:
		c.text = of.Value
	}
	return c, err
}

var errAmbiguousForProgram = exchange.FailUndecided(http.StatusBadRequest,
	errors.New("the path is ambiguous: an endpoint could interpret it as another path, for which a snippet decides "+
		"differently"))

// check returns an error for a request that must be rejected. g may be nil.
func (g *pathGuard) check(x *exchange.Exchange) error {
	if g == nil {
		return nil
	}
	budget := pattern.NewBudget()
	if !g.agreesOnPath(x, &budget) || !g.agreesOnTarget(x, &budget) {
		return errAmbiguousForProgram
	}
	return nil
}

// agreesOnPath reports whether the program decides in the same way for all readings of the path.
func (g *pathGuard) agreesOnPath(x *exchange.Exchange, budget *pattern.Budget) bool {
	if !g.always && g.ofPath == nil || !message.Ambiguous(x.EscapedPath) {
		return true
	}
	return !g.always && agree(g.ofPath, x.EscapedPath, message.CleanPath(x.Path), "", budget)
}

// agreesOnTarget reports whether the program decides in the same way for all readings of the request target.
func (g *pathGuard) agreesOnTarget(x *exchange.Exchange, budget *pattern.Budget) bool {
	if g.ofTarget == nil {
		return true
	}
	target, _, _ := strings.Cut(x.Target, "?")
	return !message.Ambiguous(target) || agree(g.ofTarget, target, target, x.Target[len(target):], budget)
}

// agree reports whether each condition has the same result for all readings of an ambiguous path. escaped is the path
// as the client has sent it, path is the path with which the program compares, and query is the query that follows it.
func agree(conditions []pathCondition, escaped, path, query string, budget *pattern.Budget) bool {
	readings, ok := message.Readings(escaped)
	if !ok {
		return false
	}
	for i := range conditions {
		want := conditions[i].find(path+query, budget)
		for _, reading := range readings {
			if found := conditions[i].find(reading+query, budget); found != want || found == pattern.Unknown {
				return false
			}
		}
	}
	return true
}

func (c *pathCondition) find(text string, budget *pattern.Budget) pattern.Found {
	switch {
	case c.search != nil:
		return c.search.Search(text, budget)
	case text == c.text:
		return pattern.Yes
	}
	return pattern.No
}
