package ingress

import (
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// patternSize returns the total size of the regular expressions in annotations. An expression that is compiled several
// times is counted each time. The pattern for the subject of client certificates is compiled for each host, and the
// header pattern of a canary for each path. The patterns for cookies, redirects, aliases and snippets are compiled
// once.
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
	size += r.aliasSize() + r.annotations.SnippetSize()
	f := &r.annotations.Forwarding
	for _, rewrite := range []ir.ResponseRewrite{f.CookiePath, f.CookieDomain, f.Redirect} {
		if expression, ok := strings.CutPrefix(rewrite.From, "~"); ok {
			size += sizeOf(strings.TrimPrefix(expression, "*"))
		}
	}
	return size
}

// aliasSize returns the total size of the regular expressions in server-alias.
func (r *reading) aliasSize() (size int) {
	for _, name := range r.Aliases {
		if expression, ok := strings.CutPrefix(name, "~"); ok {
			n, _ := pattern.FoldSize(expression)
			size += n
		}
	}
	return size
}

// sizeOf returns the size of a regular expression after compilation. The expression must be valid.
func sizeOf(expression string) int {
	size, err := pattern.Size(expression)
	if err != nil {
		return 0
	}
	return size
}

// pathGroups returns the sorted names of the groups in the paths of the Ingress, as if all paths were regular
// expressions.
func (r *reading) pathGroups() (names []string) {
	for i := range r.Object.Spec.Rules {
		http := r.Object.Spec.Rules[i].HTTP
		if http == nil {
			continue
		}
		for j := range http.Paths {
			names = append(names, ir.GroupNames(http.Paths[j].Path)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
