package annotations

import (
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
)

// guards keep requests away from a backend. To pass over one would let everybody in, so while it is not supported, the
// Ingress answers 503, as ingress-nginx does where it cannot do what such an annotation says. One that is supported is a
// row of the table in place of one here.
var guards = []string{
	"allowlist-source-range", "auth-type", "auth-url", "denylist-source-range", "whitelist-source-range",
}

// unsupportedGuard closes the Ingress. An empty value asks for nothing, and neither does a list of everybody, which
// cert-manager writes into the Ingresses that answer its challenges.
func unsupportedGuard(s *Settings, name, value string) *report.Problem {
	if strings.TrimSpace(value) == "" {
		return unknown(name, false)
	}
	if (name == "whitelist-source-range" || name == "allowlist-source-range") && everybody(value) {
		return nil
	}
	s.Closed = true
	return &report.Problem{Severity: report.Error, Reason: report.UnsupportedGuard, Message: fmt.Sprintf(
		"the annotation %s of ingress-nginx keeps requests out, and is not supported yet: all requests for this Ingress get 503. "+
			"To serve it without, remove the annotation", name)}
}

// everybody says whether a list of networks has all addresses in it.
func everybody(value string) bool {
	var v4, v6 bool
	for network := range strings.SplitSeq(value, ",") {
		switch strings.TrimSpace(network) {
		case "0.0.0.0/0":
			v4 = true
		case "::/0":
			v6 = true
		}
	}
	return v4 && v6
}

// closed answers in place of everything else.
func closed(s *Settings) []ir.Filter {
	if !s.Closed {
		return nil
	}
	return []ir.Filter{ir.DirectResponse{Status: 503}}
}
