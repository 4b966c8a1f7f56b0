package ir

import (
	"regexp"
	"slices"
	"strings"
)

// PathConditions returns the conditions of a program that compare the path or the request target with a constant. The
// patterns of rewrites are such conditions, too. It returns nil if the path cannot decide whether the program responds,
// or whether the request gets another route. all is false if the path may also decide in other ways, such as through
// variables that the program sets.
func (p *Program) PathConditions() (conditions []Condition, all bool) {
	flow := pathFlow{own: p.OwnVariables(), byPath: map[string]bool{
		"uri": true, "document_uri": true, "request_uri": true, "escaped_request_uri": true,
	}}
	for _, name := range p.PathGroups {
		flow.byPath[name] = true
	}
	flow.collect(p.Steps)
	if flow.guards(p.Steps) {
		return nil, false
	}
	if flow.direct = true; !flow.guards(p.Steps) {
		return nil, true
	}
	return flow.conditions, true
}

// WithHeaderDecisions returns the program with more conditions at the end of its steps: one for each variable that it
// sets and uses in a header of the request, as if this variable decided whether the program responds. It is for
// programs whose request headers decide about access, because an authentication service gets them.
func (p *Program) WithHeaderDecisions() *Program {
	used := map[string]bool{}
	for d := range p.allDirectives() {
		for text := range d.templates() {
			for _, found := range anyVariable.FindAllStringSubmatch(text, -1) {
				used[found[1]] = true
			}
		}
	}
	own := p.OwnVariables()
	slices.Sort(own)
	extended := &Program{Steps: slices.Clone(p.Steps)}
	for _, name := range slices.Compact(own) {
		if used[name] {
			extended.Steps = append(extended.Steps,
				Step{If: &If{Condition: Condition{Variable: name}, Steps: []Step{{Return: &Return{}}}}})
		}
	}
	return extended
}

// pathFlow finds out what the path of a request decides in a program.
type pathFlow struct {
	// direct is true if the conditions in the field conditions count as decisions by the path. Without them, a program
	// whose steps are the same for two paths sets the same variables.
	direct     bool
	conditions []Condition
	// own are the names of variables that the program sets. byPath are the names of variables whose values may depend
	// on the path, including the named groups of regular expressions.
	own    []string
	byPath map[string]bool
}

// collect adds the conditions and the named groups of steps to f.
func (f *pathFlow) collect(steps []Step) {
	for i := range steps {
		switch s := &steps[i]; {
		case s.Rewrite != nil:
			f.addGroups(s.Rewrite.Pattern)
			if !matchesAll.MatchString(s.Rewrite.Pattern) {
				f.conditions = append(f.conditions,
					Condition{Variable: "uri", Operator: Matches, Value: s.Rewrite.Pattern})
			}
		case s.If != nil:
			if s.If.searches() {
				f.addGroups(s.If.Value)
			}
			if s.If.isDirect() {
				f.conditions = append(f.conditions, s.If.Condition)
			}
			f.collect(s.If.Steps)
		}
	}
}

// matchesAll matches the usual regular expressions that match every path.
var matchesAll = regexp.MustCompile(`^(\^?/?(\.\*|\(\.\*\))\$?|\^|\^?/)$`)

func (f *pathFlow) addGroups(expression string) {
	for _, name := range GroupNames(expression) {
		f.byPath[name] = true
	}
}

// searches reports whether the value of the condition is a regular expression.
func (c *Condition) searches() bool {
	switch c.Operator {
	case Matches, MatchesFold, NotMatches, NotMatchesFold:
		return true
	case IsTrue, Equal, NotEqual:
	}
	return false
}

// isDirect reports whether the condition compares the path or the request target with a constant.
func (c *Condition) isDirect() bool {
	switch c.Variable {
	case "uri", "document_uri", "request_uri":
		return c.searches() || c.Operator != IsTrue && !strings.Contains(c.Value, "$")
	}
	return false
}

// guards reports whether the path may decide whether steps respond, or whether the request gets another route.
func (f *pathFlow) guards(steps []Step) bool {
	// A rewrite may run the steps again, and variables keep their values. So follow the steps until no further variable
	// depends on the path.
	for known := 0; known < len(f.byPath); {
		known = len(f.byPath)
		if guards, _ := f.follow(steps, false); guards {
			return true
		}
	}
	return false
}

// follow adds the variables that steps set to f.byPath if their values depend on the path. decided is true if the path
// may decide whether steps run. guards reports whether the path may decide about the response or the route, and ends
// whether it may decide that the steps after these do not run.
func (f *pathFlow) follow(steps []Step, decided bool) (guards, ends bool) {
	for i := range steps {
		guarding, ending := f.step(&steps[i], decided)
		guards, ends, decided = guards || guarding, ends || ending, decided || ending
		if steps[i].Return != nil || steps[i].Break {
			break
		}
	}
	return guards, ends
}

// step is like follow, for one step.
func (f *pathFlow) step(s *Step, decided bool) (guards, ends bool) {
	switch {
	case s.Set != nil:
		if decided || f.inTemplate(s.Set.Value) {
			f.byPath[s.Set.Name] = true
		}
	case s.If != nil:
		return f.follow(s.If.Steps, decided || f.decides(&s.If.Condition))
	case s.Rewrite != nil:
		decided = decided || f.direct && !matchesAll.MatchString(s.Rewrite.Pattern)
		return decided && (s.Rewrite.Flag != BreakFlag || s.Rewrite.Redirects()), decided
	case s.Return != nil:
		return decided, decided
	case s.Break:
		return false, decided
	}
	return false, false
}

// decides reports whether the path decides about a condition.
func (f *pathFlow) decides(c *Condition) bool {
	if c.isDirect() {
		return f.direct
	}
	return f.depends(c.Variable) || !c.searches() && f.inTemplate(c.Value)
}

// inTemplate reports whether the value of a template may depend on the path.
func (f *pathFlow) inTemplate(template string) bool {
	for _, match := range anyVariable.FindAllStringSubmatch(template, -1) {
		if f.depends(match[1]) {
			return true
		}
	}
	return false
}

// depends reports whether the value of a variable may depend on the path. The capture groups $1 to $9 always may, since
// the first ones come from the regular expression of the route. The same holds for names that neither nginx nor the
// program knows: they are named groups of that expression.
func (f *pathFlow) depends(name string) bool {
	return f.byPath[name] || !slices.Contains(f.own, name) && !ofRequest.MatchString(name) &&
		!ofRoute.MatchString("$"+name)
}
