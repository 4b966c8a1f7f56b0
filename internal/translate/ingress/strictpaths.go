package ingress

import (
	"fmt"
	"iter"
	"regexp"

	networkingv1 "k8s.io/api/networking/v1"
)

// plainPath matches the paths that ingress-nginx accepts if the path type is Exact or Prefix.
var plainPath = regexp.MustCompile(`^/[0-9A-Za-z._/-]*$`)

// StrictPath is a path that strict-validate-path-type forbids.
type StrictPath struct {
	// Field is the position of the path in its Ingress, such as "spec.rules[0].http.paths[0].path".
	Field string
	Path  string
	Type  networkingv1.PathType
}

// StrictPaths yields the paths of an Ingress that ingress-nginx rejects because of their types, if
// strict-validate-path-type is true: their type is Exact or Prefix, and they look like regular expressions.
func StrictPaths(o *networkingv1.Ingress) iter.Seq[StrictPath] {
	return func(yield func(StrictPath) bool) {
		for i := range o.Spec.Rules {
			http := o.Spec.Rules[i].HTTP
			if http == nil {
				continue
			}
			for j := range http.Paths {
				p := &http.Paths[j]
				if p.PathType == nil || *p.PathType == networkingv1.PathTypeImplementationSpecific || p.Path == "" ||
					plainPath.MatchString(p.Path) {
					continue
				}
				field := fmt.Sprintf("spec.rules[%d].http.paths[%d].path", i, j)
				if !yield(StrictPath{field, p.Path, *p.PathType}) {
					return
				}
			}
		}
	}
}
