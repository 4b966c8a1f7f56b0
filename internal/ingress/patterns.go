package ingress

import (
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/pattern"
)

// patternSize is what the regular expressions of the annotations come to, as often as they are compiled: one that is searched in the
// names of clients for each host, that of a canary for each path, and those for cookies, redirects and names once.
func (r *reading) patternSize() int {
	size, paths := 0, 0
	for _, of := range r.Paths {
		paths += len(of)
	}
	if r.ClientAuth != nil && r.ClientAuth.Subject != "" {
		size += len(r.Paths) * sizeOf(r.ClientAuth.Subject)
	}
	if r.Canary != nil && r.Canary.HeaderPattern != "" {
		size += paths * sizeOf(r.Canary.HeaderPattern)
	}
	size += r.aliasSize()
	f := &r.annotations.Forwarding
	for _, rewrite := range []ir.AnswerRewrite{f.CookiePath, f.CookieDomain, f.Redirect} {
		if expression, ok := strings.CutPrefix(rewrite.From, "~"); ok {
			size += sizeOf(strings.TrimPrefix(expression, "*"))
		}
	}
	return size
}

// aliasSize is what the names come to that are regular expressions.
func (r *reading) aliasSize() (size int) {
	for _, name := range r.Aliases {
		if expression, ok := strings.CutPrefix(name, "~"); ok {
			n, _ := pattern.FoldSize(expression)
			size += n
		}
	}
	return size
}

// sizeOf is that of an expression that has been read.
func sizeOf(expression string) int {
	size, err := pattern.Size(expression)
	if err != nil {
		return 0
	}
	return size
}
