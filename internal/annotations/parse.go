package annotations

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/k8singress/k8singress/internal/nginx"
	"github.com/k8singress/k8singress/internal/report"
)

// Parse reads the annotations of an Ingress. What it does not say is as in defaults. An annotation that cannot be read is
// left out and reported; the others count.
func Parse(defaults Settings, all map[string]string) (*Settings, []report.Problem) {
	r := reading{settings: &defaults}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if name, own, ours := cutPrefix(key); ours {
			r.one(name, own, all[key], "metadata.annotations["+key+"]")
		}
	}
	r.finish()
	return r.settings, r.problems
}

// ParseOptions reads options that have the names and the meanings of ingress-nginx's annotations, such as the keys of its
// ConfigMap. Others are passed over. A problem has the name for its Field.
func ParseOptions(defaults Settings, options map[string]string) (*Settings, []report.Problem) {
	r := reading{settings: &defaults}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if Find(name) != nil {
			r.one(name, false, options[name], name)
		}
	}
	r.finish()
	return r.settings, r.problems
}

// reading is what becomes of several values.
type reading struct {
	settings *Settings
	problems []report.Problem
	// taken are the values that count, to be checked against each other.
	taken []taken
}

type taken struct {
	row   *Annotation
	field string
}

// one reads a value that stands in a field.
func (r *reading) one(name string, own bool, value, field string) {
	row := find(name, own)
	var p *report.Problem
	switch {
	case row == nil && !own && slices.Contains(guards, name):
		p = unsupportedGuard(r.settings, name, value)
	case row == nil:
		p = unknown(name, own)
	default:
		p = row.problem(r.settings, value)
		if strings.TrimSpace(value) != "" && (p == nil || p.Severity != report.Error) {
			r.taken = append(r.taken, taken{row, field})
		}
	}
	if p != nil {
		p.Field = field
		r.problems = append(r.problems, *p)
	}
}

// finish makes what several values make together, and says which of them then have no effect.
func (r *reading) finish() {
	r.settings.finish()
	for _, t := range r.taken {
		if t.row.check == nil {
			continue
		}
		if message := t.row.check(r.settings); message != "" {
			r.problems = append(r.problems, report.Problem{
				Severity: report.Warning, Reason: report.InvalidAnnotation, Field: t.field, Message: message,
			})
		}
	}
}

func cutPrefix(key string) (name string, own, ours bool) {
	if name, ours = strings.CutPrefix(key, Prefix); ours {
		return name, false, true
	}
	name, ours = strings.CutPrefix(key, OwnPrefix)
	return name, ours, ours
}

// problem reads a value into the settings and says what is the matter with it.
func (a *Annotation) problem(s *Settings, value string) *report.Problem {
	err := a.read(s, value)
	if err == nil {
		return nil
	}
	p := &report.Problem{Severity: report.Error, Reason: report.InvalidAnnotation, Message: err.Error()}
	var unsupported unsupportedError
	switch {
	case errors.As(err, &unsupported):
		p.Reason = report.UnsupportedValue
	case nginx.Counts(err):
		p.Severity = report.Warning
		return p
	}
	if a.closes {
		s.Closed = true
	}
	if a.fail != nil {
		a.fail(s)
	}
	return p
}

// unsupportedError is for values that ingress-nginx takes and this controller does not.
type unsupportedError string

func (e unsupportedError) Error() string { return string(e) }

// mostBytes is longer than any value that anybody has a use for. It bounds what is copied into every route.
const mostBytes = 8192

// CheckText refuses what could mean something to a log, a header or a terminal, and what is longer than anything of use.
func CheckText(value string) error {
	if len(value) > mostBytes {
		return fmt.Errorf("the value is %d bytes long: %d are the most", len(value), mostBytes)
	}
	for _, r := range value {
		if nginx.IsControl(r) || r == unicode.ReplacementChar {
			return fmt.Errorf("the value has the character %U in it: write it on one line of plain text", r)
		}
	}
	return nil
}
