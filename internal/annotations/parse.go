package annotations

import (
	"maps"
	"slices"

	"github.com/k8singress/k8singress/internal/option"
	"github.com/k8singress/k8singress/internal/report"
)

// Parse reads the annotations of an Ingress. Where they say nothing, the defaults hold. An annotation that cannot be read is left
// out and reported; the others count.
func Parse(defaults Settings, all map[string]string) (*Settings, []report.Problem) {
	r := option.Reading[Settings]{Settings: &defaults, Invalid: report.InvalidAnnotation}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		name, ours := nameOf(key)
		field := report.AnnotationField(key)
		switch row := Table.Find(name); {
		case !ours:
		case row != nil:
			r.Read(row, all[key], field)
		case slices.Contains(guards, name):
			unsupportedGuard(&r, name, all[key], field)
		default:
			r.Warn(report.UnknownAnnotation, field, unknown(key))
		}
	}
	defaults.Finish()
	r.Check()
	return &defaults, r.Problems
}
