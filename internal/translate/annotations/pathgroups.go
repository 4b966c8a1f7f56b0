package annotations

import (
	"slices"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// groupVariables returns the names of the groups in a path that become variables for its requests. A group cannot
// replace a variable of nginx or of the administrator, since the snippets of the ConfigMap may reject clients by them.
func (s *Settings) groupVariables(path string) []string {
	names := ir.GroupNames(path)
	if names == nil {
		return nil
	}
	reserved := s.sharedVariables()
	if read := s.Asked.GlobalAuth.Snippet.Read; read != nil && read.Program != nil {
		reserved = append(reserved, read.Program.OwnVariables()...)
	}
	names = slices.DeleteFunc(s.HTTP.Unknown(names), func(name string) bool {
		return exchange.CheckSettable(name) != nil || slices.Contains(reserved, name)
	})
	if len(names) == 0 {
		return nil
	}
	return names
}

// sharedVariables returns the names of the variables that the ConfigMap's snippets for locations and servers define.
func (s *Settings) sharedVariables() []string {
	return slices.Concat(snippets.Defined(s.Asked.Snippets.Location.Shared),
		snippets.Defined(s.Asked.Snippets.Server.Shared))
}

// UnknownInSnippets returns the names in a list that are not variables of the ConfigMap's snippets. s must be the
// settings of the ConfigMap.
func (s *Settings) UnknownInSnippets(names []string) []string {
	names = s.HTTP.Unknown(names)
	if len(names) == 0 {
		return nil
	}
	defined := s.sharedVariables()
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(defined, name) })
}
