// Package annotations reads the annotations of an Ingress: one file for each feature, and table.go, which lists them in
// the order in which a request meets them. Documentation, checks and the search for typing errors come from that table.
package annotations

//go:generate go test -run ^TestReference$ -update

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/text"
)

// Prefix is that of ingress-nginx's annotations.
const Prefix = "nginx.ingress.kubernetes.io/"

// Scope says what an annotation changes.
type Scope string

const (
	// ScopeIngress is the Ingress as a whole, or its hosts.
	ScopeIngress Scope = "ingress"
	// ScopeLocation is each path of the Ingress.
	ScopeLocation Scope = "location"
)

// Risk is how much an annotation lets its author do, as ingress-nginx ranks it.
type Risk string

// The ranks there are.
const (
	RiskLow      Risk = "Low"
	RiskMedium   Risk = "Medium"
	RiskHigh     Risk = "High"
	RiskCritical Risk = "Critical"
)

// Annotation is one row of the table.
type Annotation struct {
	// Name is without Prefix.
	Name string
	// Doc says in one or two sentences what it does, Values what may stand in it.
	Doc, Values string
	Example     string
	Default     string
	Scope       Scope
	Risk        Risk

	// parse reads a value into the settings. An error is worded for whoever wrote the value.
	parse func(*Settings, string) error
	// filter returns what the annotation puts into the way of a request on one path, or nil.
	filter func(*Settings, string) ir.Filter
}

// Settings are the annotations of one Ingress as typed values.
type Settings struct {
	// RewriteTarget replaces the path of a request; it is empty without rewrite.
	RewriteTarget string
	// Attempts are how the endpoints are tried, Forwarding is how a request is handed to one.
	Attempts   ir.Attempts
	Forwarding ir.Forwarding
	// LoadBalancing is what the Ingress asks for its backends.
	LoadBalancing ir.LoadBalancing
	// AvailableChains are the names of the chains that the administrator has put into the Caddyfile.
	AvailableChains []string
	// Closed says that every request is refused.
	Closed bool
}

// Filters returns the filters for one path of the Ingress, in the order in which a request meets them.
func (s *Settings) Filters(path string) []ir.Filter {
	filters := closed(s)
	for i := range Table {
		if Table[i].filter == nil {
			continue
		}
		if f := Table[i].filter(s, path); f != nil {
			filters = append(filters, f)
		}
	}
	return filters
}

// Parse reads the annotations of an Ingress. What it does not say is as in defaults. An annotation that cannot be read is
// left out and reported; the others count.
func Parse(defaults Settings, all map[string]string) (*Settings, []report.Problem) {
	settings := &defaults
	var problems []report.Problem
	for _, key := range slices.Sorted(maps.Keys(all)) {
		name, ours := strings.CutPrefix(key, Prefix)
		if !ours {
			continue
		}
		if p := parseOne(settings, name, all[key]); p != nil {
			p.Field = "metadata.annotations[" + key + "]"
			problems = append(problems, *p)
		}
	}
	return settings, problems
}

func parseOne(settings *Settings, name, value string) *report.Problem {
	row := find(name)
	switch {
	case row == nil && slices.Contains(guards, name):
		return unsupportedGuard(settings, name, value)
	case row == nil:
		return unknown(name)
	}
	err := checkText(value)
	if err == nil {
		err = row.parse(settings, value)
	}
	var unsupported unsupportedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unsupported):
		return &report.Problem{Severity: report.Error, Reason: report.UnsupportedValue, Message: err.Error()}
	}
	return &report.Problem{Severity: report.Error, Reason: report.InvalidAnnotation, Message: err.Error()}
}

// unsupportedError is for values that ingress-nginx takes and this controller does not.
type unsupportedError string

func (e unsupportedError) Error() string { return string(e) }

func find(name string) *Annotation {
	for i := range Table {
		if Table[i].Name == name {
			return &Table[i]
		}
	}
	return nil
}

// checkText refuses what could mean something to a log, a header or a terminal.
func checkText(value string) error {
	for _, r := range value {
		if text.IsControl(r) || r == unicode.ReplacementChar {
			return fmt.Errorf("the value has the character %U in it: write it on one line of plain text", r)
		}
	}
	return nil
}
