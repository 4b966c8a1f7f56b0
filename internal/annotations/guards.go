package annotations

import (
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/option"
	"github.com/k8singress/k8singress/internal/report"
)

// guards are annotations that keep requests away from a backend, and are not supported yet. Without effect, they would let every
// request in; so the Ingress answers 503, as ingress-nginx does where it cannot do what such an annotation says.
var guards = []string{"auth-url"}

// unsupportedGuard closes the Ingress. An empty value asks for nothing.
func unsupportedGuard(r *option.Reading[Settings], name, value, field string) {
	if strings.TrimSpace(value) == "" {
		r.Warn(report.UnknownAnnotation, field, unknown(Key(name)))
		return
	}
	r.Settings.close()
	r.Refuse(report.UnsupportedAccessControl, field, fmt.Sprintf("the annotation %s of ingress-nginx keeps requests out, and is not supported yet: "+
		"%s. To serve it without, remove the annotation", name, ingressClosed))
}

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
