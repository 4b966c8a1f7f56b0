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
	reserved := slices.Concat(snippets.Defined(s.Asked.Snippets.Location.Shared),
		snippets.Defined(s.Asked.Snippets.Server.Shared))
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
