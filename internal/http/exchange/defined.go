package exchange

import "github.com/k8singress/k8singress/internal/http/variables"

// UseVariables sets Variables. If the set is another one than before, because the request gets a route of a newer
// configuration, the values that were computed with the old set are dropped.
func (x *Exchange) UseVariables(set *variables.Set) {
	if x.Variables != set {
		x.Variables, x.defined = set, nil
	}
}

// definedVariable returns the value of a variable in Variables, or an empty string if there is no such variable. As in
// nginx, the case of the name is ignored; names in Variables are in lower case.
func (x *Exchange) definedVariable(name string) string {
	if x.Variables == nil {
		return ""
	}
	if name = variables.Lower(name); !x.Variables.Has(name) {
		return ""
	}
	if x.defined == nil {
		x.defined = &variables.Values{}
	}
	return x.Variables.Value(name, x.defined, x.Variable)
}

// VariablesFailed returns an error if the value of a variable in Variables could not be computed for this request, for
// example because the request is too long for a regular expression. The request must then be rejected, because the
// value may decide about access.
func (x *Exchange) VariablesFailed() error {
	if reason := x.defined.Failed(); reason != nil {
		return FailUndecided(reason.Status, reason)
	}
	return nil
}

// isDefinable reports whether Variables may contain a variable with this name, so that its value may be derived from
// other variables.
func isDefinable(name string) bool {
	return VariableOf(name) == nil && (name[0] < '0' || name[0] > '9')
}
