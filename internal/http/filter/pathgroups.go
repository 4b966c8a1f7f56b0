package filter

import (
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// pathGroups sets variables to named groups of the route's regular expression, as nginx does when it has found a
// location.
type pathGroups struct{ ir.PathGroups }

func newPathGroups(of ir.PathGroups) (Filter, error) {
	for _, name := range of.Names {
		if err := exchange.CheckSettable(name); err != nil {
			return nil, err
		}
	}
	return &pathGroups{of}, nil
}

func (h *pathGroups) Apply(x *exchange.Exchange) (bool, error) {
	if x.Route.Regex == nil {
		return false, nil
	}
	path := message.CleanPath(x.Path)
	groups := x.Route.Submatch(path)
	for n, name := range x.Route.Regex.GroupNames() {
		if slices.Contains(h.Names, name) {
			x.SetVariable(name, group(path, groups, n))
		}
	}
	return false, nil
}

// groupNumber returns the number of the capture group that a variable in a rewrite-target stands for: $1 to $9, or a
// named group of the route's regular expression. It returns 0 if the variable stands for no group.
func groupNumber(route *exchange.Route, variable string) int {
	switch {
	case len(variable) == 1 && '1' <= variable[0] && variable[0] <= '9':
		return int(variable[0] - '0')
	case route.Regex == nil || variable == "":
		return 0
	}
	return max(slices.Index(route.Regex.GroupNames(), strings.ToLower(variable)), 0)
}

// group returns the text of capture group n, or an empty string if the group did not match. groups holds the offsets of
// the groups in path, as in package regexp.
func group(path string, groups []int, n int) string {
	if 2*n+1 >= len(groups) || groups[2*n] < 0 {
		return ""
	}
	return path[groups[2*n]:groups[2*n+1]]
}
