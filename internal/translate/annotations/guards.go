package annotations

import "github.com/k8singress/k8singress/internal/model/ir"

// ingressClosed describes the effect of close in messages.
const ingressClosed = "all requests for this Ingress get 503"

func (s *Settings) close() { s.Closed = true }

// closed returns a filter that rejects all requests with 503 if the Ingress is closed. It runs before all other
// filters.
func (s *Settings) closed(string) []ir.Filter {
	if !s.Closed {
		return nil
	}
	return []ir.Filter{ir.DirectResponse{Status: 503}}
}
