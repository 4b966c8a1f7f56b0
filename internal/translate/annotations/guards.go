package annotations

import "github.com/k8singress/k8singress/internal/model/ir"

// ingressClosed is used in messages about invalid access control settings. It describes their effect.
const ingressClosed = "all requests for this Ingress get 503"

func (s *Settings) close() { s.Closed = true }

// The method closed returns a filter that responds with 503 to all requests if s.Closed is true, and nil otherwise. The
// filter runs before all other filters.
func (s *Settings) closed(string) []ir.Filter {
	if !s.Closed {
		return nil
	}
	return []ir.Filter{ir.DirectResponse{Status: 503}}
}
