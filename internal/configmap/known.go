package configmap

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/suggest"
)

// knownKeys are the keys of ingress-nginx v1.15.1, one on each line, with what becomes of them here as long as they are not in
// the table.
//
//go:embed known.txt
var knownKeys string

// fate is what becomes of a key that is not in the table.
type fate string

const (
	// fateTuning is for settings of nginx without a visible effect: they are no mistake, and not reported.
	fateTuning fate = "tuning"
	// fateDead is for keys that have no effect in ingress-nginx either.
	fateDead fate = "dead"
	// fateLater is for the others.
	fateLater fate = "later"
)

// names are all keys of ingress-nginx in order, and fates is what becomes of them.
var names, fates = readKnown(knownKeys)

func readKnown(text string) ([]string, map[string]fate) {
	var names []string
	fates := map[string]fate{}
	for line := range strings.Lines(text) {
		name, f, _ := strings.Cut(strings.TrimSpace(line), " ")
		names = append(names, name)
		fates[name] = fate(f)
	}
	return names, fates
}

// other reports a key that is not in the table.
func (r *reading) other(name, field string) {
	switch f := fates[name]; {
	case f == fateTuning:
	case f == fateDead:
		r.Warn(report.UnknownKey, field, fmt.Sprintf("the key %s has no effect, as in ingress-nginx v1.15: remove it", name))
	case f != "":
		r.Warn(report.UnknownKey, field, fmt.Sprintf("the key %s of ingress-nginx is not supported yet, and has no effect", name))
	default:
		r.Warn(report.UnknownKey, field, fmt.Sprintf("there is no key %q, and it has no effect%s",
			name, suggest.Hint(name, append(Table.Names(), names...))))
	}
}

func (r *reading) closed() string {
	if r.class {
		return "the Ingresses of this class"
	}
	return "all Ingresses"
}
