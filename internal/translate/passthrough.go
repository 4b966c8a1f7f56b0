package translate

import (
	"maps"
	"slices"

	"github.com/k8singress/k8singress/internal/ingress"
	"github.com/k8singress/k8singress/internal/report"
)

// passedIn is the namespace whose Ingresses hand the TLS connections of a host on as they are. It is empty where TLS ends here.
func (t *Translator) passedIn(host string) string {
	if m := t.merged[host]; m != nil {
		return m.PassedIn
	}
	return ""
}

// certificateProblems are those of an Ingress: what clients are shown here is nobody's concern where TLS ends elsewhere.
func (t *Translator) certificateProblems(r *ingress.Result) []report.Problem {
	var all []report.Problem
	for i := range r.CertificateProblems {
		p := &r.CertificateProblems[i]
		shown := len(p.Hosts) == 0 || slices.ContainsFunc(p.Hosts, func(host string) bool { return t.passedIn(host) == "" })
		switch {
		case shown:
			all = append(all, p.Problem)
		case p.Passed != "":
			all = append(all, report.Problem{Severity: report.Info, Reason: p.Reason, Field: p.Field, Message: p.Passed})
		}
	}
	return all
}

// voidWithPassthrough is what there is to say of annotations of an Ingress that asks for TLS connections to be passed through. Where
// they are not, the annotations count, and somebody who is told to remove them would let everybody in.
func (t *Translator) voidWithPassthrough(r *ingress.Result) *report.Problem {
	if !r.PassesThrough || r.Closed {
		return nil
	}
	var passed []string
	for _, host := range slices.Sorted(maps.Keys(r.Paths)) {
		if t.passedIn(host) == r.Object.Namespace {
			passed = append(passed, host)
		}
	}
	return r.VoidFor(passed, len(passed) == len(r.Paths))
}
