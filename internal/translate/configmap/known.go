package configmap

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/suggest"
)

// knownKeys lists the keys of ingress-nginx v1.15.1, one key per line. If this controller does not support a key, the
// line also contains the fate of the key (see the type fate), and optionally a note for users: the reason, or a
// replacement.
//
//go:embed known.txt
var knownKeys string

// fate says how the controller handles a key of ingress-nginx that it does not support.
type fate string

const (
	// fateTuning is the fate of nginx settings without a visible effect. They cause no warning.
	fateTuning fate = "tuning"
	// fateDead is the fate of keys that have no effect in ingress-nginx either.
	fateDead fate = "dead"
	// fateNever is the fate of keys that will never be supported. Each has a note with the reason or a replacement.
	fateNever fate = "never"
	// fateLater is the fate of keys that are not supported yet.
	fateLater fate = "later"
)

// names lists the ConfigMap keys of ingress-nginx, in the order of knownKeys. fates tells how the controller handles
// each key that it does not support. notes contains the reasons or replacements to add to warnings about unsupported
// keys.
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

// The method other handles a key that is not in Table. It reports a warning that depends on the fate of the key. There
// is no warning for a key with fateTuning.
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
		r.Warn(report.UnknownKey, field, fmt.Sprintf("the key %q does not exist, and has no effect%s",
			name, suggest.Hint(name, append(Table.Names(), names...))))
	}
}

func (r *reading) closed() string {
	if r.class {
		return "the Ingresses of this class"
	}
	return "all Ingresses"
}
