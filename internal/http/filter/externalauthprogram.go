package filter

import (
	"errors"
	"slices"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/extauth"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

var errAuthSteps = errors.New("the program of external authentication changes the path or the query of the request, " +
	"or ends its steps")

// setProgram compiles the program for the requests to the service.
func (h *externalAuth) setProgram(of *ir.Program) (err error) {
	if rewrites(of.Steps) || slices.Contains(of.OwnVariables(), "args") {
		return errAuthSteps
	}
	if h.program, err = compileProgram(of); err != nil {
		return err
	}
	if h.program.paths, err = newPathGuard(of.WithHeaderDecisions()); err != nil {
		return err
	}
	for _, header := range of.EndpointHeaders {
		value, err := nginx.ParseTemplate(header.Value, nil)
		if err != nil {
			return err
		}
		if err := h.setHeader(header.Name, value, true); err != nil {
			return err
		}
	}
	return nil
}

// rewrites reports whether steps may change the path of the request, or end themselves without a response.
func rewrites(steps []ir.Step) bool {
	for i := range steps {
		switch s := &steps[i]; {
		case s.Rewrite != nil, s.Break, s.If != nil && rewrites(s.If.Steps):
			return true
		}
	}
	return false
}

// runProgram runs the program, as nginx does in the location for the requests to the service. It returns the response
// of the program. Without such a response, it returns the service's response to the changed request.
func (h *externalAuth) runProgram(x *exchange.Exchange) (verdict *extauth.Verdict, err error) {
	if err := h.program.paths.check(x); err != nil {
		return nil, err
	}
	x.Subrequest(func() {
		r := h.program.newRun(x)
		_, err = r.run(h.program.steps)
		changes := r.directives
		switch {
		case err != nil:
		case r.response != nil:
			verdict = &extauth.Verdict{Status: r.response.status}
		case changes != nil && changes.ChangesRequest():
			changes.ChangeRequest(x)
			// The cache compares the header fields of clients, and the service decides by the changed fields.
			verdict, err = h.call(x)
		default:
			verdict, err = h.ask(x)
		}
	})
	return verdict, err
}
