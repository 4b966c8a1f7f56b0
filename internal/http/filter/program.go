package filter

import (
	"fmt"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// program runs nginx configuration that was parsed into steps and directives. See ir.Program.
type program struct {
	// limit is checked before the steps. It may be nil.
	limit *limitExcept
	steps []step
	// directives apply to a request besides the steps, unless a condition with directives was true. They are nil if
	// there are no directives.
	directives *exchange.Directives
	// paths is nil if the path does not decide whether the program responds.
	paths *pathGuard
	// relative is true if a redirect to a path stays without scheme and host.
	relative bool
	// server is true for the program of a host, whose steps run before the route for the request is final.
	server bool
	// usesGroups is true if a template contains one of the variables $1 to $9.
	usesGroups bool
}

// step is one compiled ir.Step. Exactly one field is set.
type step struct {
	set     *setVariable
	branch  *branch
	answer  *programResponse
	rewrite *programRewrite
	breaks  bool
}

type setVariable struct {
	name  string
	value *nginx.Template
}

// branch is a compiled ir.If.
type branch struct {
	condition
	steps []step
	// directives replace the directives of the program if the condition is true.
	directives *exchange.Directives
}

func newProgram(of ir.Program) (Filter, error) {
	p, err := compileProgram(&of)
	if err != nil {
		return nil, err
	}
	p.paths, err = newPathGuard(&of)
	return p, err
}

// compileProgram compiles a program, except its field paths.
func compileProgram(of *ir.Program) (*program, error) {
	p := &program{relative: of.RelativeRedirects, server: of.Server}
	var err error
	if p.directives, err = newDirectives(&of.Directives); err != nil {
		return nil, err
	}
	if p.limit, err = newLimitExcept(of.LimitExcept); err != nil {
		return nil, err
	}
	if p.steps, err = p.compile(of.Steps); err != nil {
		return nil, err
	}
	p.usesGroups = of.UsesGroups()
	return p, nil
}

// newDirectives returns nil if there are no directives.
func newDirectives(of *ir.Directives) (*exchange.Directives, error) {
	if of.ChangesNothing() {
		return nil, nil
	}
	return exchange.NewDirectives(of)
}

func (p *program) compile(steps []ir.Step) (compiled []step, err error) {
	for i := range steps {
		s := step{}
		switch of := &steps[i]; {
		case of.Set != nil:
			s.set, err = newSetVariable(of.Set)
		case of.If != nil:
			s.branch, err = p.newBranch(of.If)
		case of.Return != nil:
			s.answer, err = newProgramResponse(of.Return)
		case of.Rewrite != nil:
			s.rewrite, err = newProgramRewrite(of.Rewrite)
		case of.Break:
			s.breaks = true
		default:
			err = errEmptyStep
		}
		if err != nil {
			return nil, err
		}
		compiled = append(compiled, s)
	}
	return compiled, nil
}

func newSetVariable(of *ir.SetVariable) (*setVariable, error) {
	if err := exchange.CheckSettable(of.Name); err != nil {
		return nil, err
	}
	value, err := nginx.ParseTemplate(of.Value, nil)
	return &setVariable{of.Name, value}, err
}

func (p *program) newBranch(of *ir.If) (*branch, error) {
	b := &branch{directives: p.directives}
	var err error
	if b.condition, err = newCondition(&of.Condition); err != nil {
		return nil, fmt.Errorf("the condition with $%s: %w", of.Variable, err)
	}
	if of.Directives != nil {
		if b.directives, err = newDirectives(of.Directives); err != nil {
			return nil, err
		}
	}
	b.steps, err = p.compile(of.Steps)
	return b, err
}

// Apply runs the steps. Then the directives of the last condition that was true apply, or else the directives of the
// program.
func (p *program) Apply(x *exchange.Exchange) (bool, error) {
	r := p.newRun(x)
	var err error
	if p.limit.appliesTo(x) {
		err = p.limit.runs.check(x)
	}
	if err == nil && p.runsSteps(x) {
		if err = p.paths.check(x); err == nil {
			r.useGroupsOfRoute()
			_, err = r.run(p.steps)
		}
		if p.server {
			x.EndServerProgram()
		}
	}
	if err == nil && r.response == nil && r.rerouted {
		return false, r.reroute()
	}
	if r.directives != nil {
		x.UseDirectives(r.directives)
	}
	switch {
	case err != nil:
		return false, err
	case r.response != nil:
		return r.respond()
	case r.directives != nil:
		r.directives.ChangeRequest(x)
	}
	return false, nil
}

// reroute makes the request get another route. As in nginx, the location that has rewritten the path still changes the
// header fields of the request, but the rest of its directives do not apply.
func (r *programRun) reroute() error {
	if r.directives != nil && !r.program.server {
		r.directives.ChangeRequest(r.x)
	}
	if err := r.x.VariablesFailed(); err != nil {
		return err
	}
	return exchange.ErrReroute
}

// runsSteps reports whether the steps must run for a request.
func (p *program) runsSteps(x *exchange.Exchange) bool {
	if p.server {
		return x.BeginServerProgram(p)
	}
	return !x.RewriteEnded
}

func (p *program) newRun(x *exchange.Exchange) programRun {
	return programRun{program: p, x: x, directives: p.directives, left: maxExpanded, budget: pattern.NewBudget()}
}

// useGroupsOfRoute makes the capture groups of the route's regular expression available as $1 to $9. The filter
// pathGroups sets the variables for named groups.
func (r *programRun) useGroupsOfRoute() {
	route := r.x.Route
	if route.Regex == nil || r.program.server || !r.program.usesGroups {
		return
	}
	path := message.CleanPath(r.x.Path)
	r.x.SetGroups(path, route.Submatch(path), nil)
}
