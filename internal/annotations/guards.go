package annotations

import "github.com/k8singress/k8singress/internal/ir"

// ingressClosed is what close does, for messages.
const ingressClosed = "all requests for this Ingress get 503"

func (s *Settings) close() { s.Closed = true }

// closed answers in place of everything else.
func (s *Settings) closed(string) []ir.Filter {
	if !s.Closed {
		return nil
	}
	return []ir.Filter{ir.DirectResponse{Status: 503}}
}
