package annotations

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/report"
)

// knownNames are the annotations of ingress-nginx v1.15.1, one on each line.
//
//go:embed known.txt
var knownNames string

var known = strings.Fields(knownNames)

// unknown says what is the matter with an annotation that is not in the table.
func unknown(name string) *report.Problem {
	p := &report.Problem{Severity: report.Warning, Reason: report.UnknownAnnotation}
	if slices.Contains(known, name) {
		p.Message = fmt.Sprintf("the annotation %s of ingress-nginx is not supported yet, and has no effect", name)
		return p
	}
	p.Message = fmt.Sprintf("there is no annotation %q, and it has no effect", Prefix+name)
	if near := nearest(name); near != "" {
		p.Message += ": did you mean " + near + "?"
	}
	return p
}

// nearest returns the known name that a typing error away, or nothing.
func nearest(name string) string {
	best, distance := "", 1+len(name)/4
	for _, candidate := range known {
		if d := edits(name, candidate, distance); d <= distance && (best == "" || d < distance) {
			best, distance = candidate, d
		}
	}
	return best
}

// edits is the Levenshtein distance of two words, or something larger than limit.
func edits(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}
