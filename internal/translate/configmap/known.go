package configmap

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/suggest"
)

// knownKeys lists the keys of ingress-nginx v1.15.1. Each line has a key, its fate if it is not in the table, and
// optionally a reason or a replacement.
//
//go:embed known.txt
var knownKeys string

// fate is the handling of a key that is not in the table.
type fate string

const (
	// fateTuning is for nginx settings without a visible effect. They are not reported.
	fateTuning fate = "tuning"
	// fateDead is for keys that have no effect in ingress-nginx either.
	fateDead fate = "dead"
	// fateNever is for keys that will not be supported. Each has a note with the reason or a replacement.
	fateNever fate = "never"
	// fateLater is for keys that are not supported yet.
	fateLater fate = "later"
)

// names are the keys of ingress-nginx in the order of knownKeys. fates and notes hold, by key, the fate and the note.
var names, fates, notes = readKnown(knownKeys)

func readKnown(text string) (names []string, fates map[string]fate, notes map[string]string) {
	fates, notes = map[string]fate{}, map[string]string{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		f, note, _ := strings.Cut(rest, " ")
		names = append(names, name)
		fates[name] = fate(f)
		if note != "" {
			notes[name] = ": " + note
		}
	}
	return names, fates, notes
}

// other reports a key that is not in the table.
func (r *reading) other(name, field string) {
	switch f := fates[name]; {
	case f == fateTuning:
	case f == fateNever:
		r.Warn(report.UnknownKey, field,
			fmt.Sprintf("the key %s of ingress-nginx has no effect here%s", name, notes[name]))
	case f == fateDead:
		r.Warn(report.UnknownKey, field,
			fmt.Sprintf("the key %s has no effect, as in ingress-nginx v1.15: remove it", name))
	case f != "":
		r.Warn(report.UnknownKey, field,
			fmt.Sprintf("the key %s of ingress-nginx is not supported yet, and has no effect%s", name, notes[name]))
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
