package annotations

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/values"
)

// Parse reads the annotations of an Ingress. What it does not say is as in defaults. An annotation that cannot be read is
// left out and reported; the others count.
func Parse(defaults Settings, all map[string]string) (*Settings, []report.Problem) {
	settings := &defaults
	var problems []report.Problem
	for _, key := range slices.Sorted(maps.Keys(all)) {
		name, own, ours := cutPrefix(key)
		if !ours {
			continue
		}
		if p := parseOne(settings, name, own, all[key]); p != nil {
			p.Field = fieldOf(key)
			problems = append(problems, *p)
		}
	}
	settings.finish()
	for i := range Table {
		row := &Table[i]
		if p := row.checked(settings, all[row.Key()]); p != nil {
			p.Field = fieldOf(row.Key())
			problems = append(problems, *p)
		}
	}
	return settings, problems
}

// ParseOptions reads options that have the names and the meanings of ingress-nginx's annotations, such as the keys of its
// ConfigMap. Others are passed over. A problem has the name for its Field.
func ParseOptions(defaults Settings, options map[string]string) (*Settings, []report.Problem) {
	settings := &defaults
	var problems []report.Problem
	note := func(name string, p *report.Problem) {
		if p != nil {
			p.Field = name
			problems = append(problems, *p)
		}
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(options)), func(name string) bool { return Find(name) == nil })
	for _, name := range names {
		note(name, parseOne(settings, name, false, options[name]))
	}
	settings.finish()
	for _, name := range names {
		note(name, Find(name).checked(settings, options[name]))
	}
	return settings, problems
}

func fieldOf(key string) string { return "metadata.annotations[" + key + "]" }

func cutPrefix(key string) (name string, own, ours bool) {
	if name, ours = strings.CutPrefix(key, Prefix); ours {
		return name, false, true
	}
	name, ours = strings.CutPrefix(key, OwnPrefix)
	return name, ours, ours
}

func parseOne(settings *Settings, name string, own bool, value string) *report.Problem {
	row := find(name, own)
	switch {
	case row == nil && !own && slices.Contains(guards, name):
		return unsupportedGuard(settings, name, value)
	case row == nil:
		return unknown(name, own)
	}
	err := row.read(settings, value)
	if err == nil {
		return nil
	}
	if row.closes {
		settings.Closed = true
	}
	return problemOf(err)
}

func problemOf(err error) *report.Problem {
	p := &report.Problem{Severity: report.Error, Reason: report.InvalidAnnotation, Message: err.Error()}
	if values.Counts(err) {
		p.Severity = report.Warning
	}
	var unsupported unsupportedError
	if errors.As(err, &unsupported) {
		p.Reason = report.UnsupportedValue
	}
	return p
}

// checked returns what is the matter with a value in view of the others.
func (a *Annotation) checked(s *Settings, value string) *report.Problem {
	if a.check == nil || strings.TrimSpace(value) == "" {
		return nil
	}
	message := a.check(s)
	if message == "" {
		return nil
	}
	return &report.Problem{Severity: report.Warning, Reason: report.InvalidAnnotation, Message: message}
}

// unsupportedError is for values that ingress-nginx takes and this controller does not.
type unsupportedError string

func (e unsupportedError) Error() string { return string(e) }

// mostBytes is longer than any value that anybody has a use for. It bounds what is copied into every route.
const mostBytes = 8192

// checkText refuses what could mean something to a log, a header or a terminal.
func checkText(value string) error {
	if len(value) > mostBytes {
		return fmt.Errorf("the value is %d bytes long: %d are the most", len(value), mostBytes)
	}
	for _, r := range value {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == unicode.ReplacementChar {
			return fmt.Errorf("the value has the character %U in it: write it on one line of plain text", r)
		}
	}
	return nil
}
