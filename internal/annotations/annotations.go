// Package annotations reads the annotations of an Ingress: one file for each feature, and table.go, which lists them in
// the order in which a request meets them. Documentation, checks and the search for typing errors come from that table.
package annotations

//go:generate go test -run ^TestReference$ -update

import (
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
)

const (
	// Prefix is that of ingress-nginx's annotations.
	Prefix = "nginx.ingress.kubernetes.io/"
	// OwnPrefix is that of the annotations for what ingress-nginx has no word for.
	OwnPrefix = kinds.OwnPrefix
)

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
	// Name is without its prefix, which is OwnPrefix with Own, and Prefix otherwise.
	Name string
	Own  bool
	// Doc says in one or two sentences what it does, Values what may stand in it.
	Doc, Values string
	Example     string
	Default     string
	Scope       Scope
	Risk        Risk
	// Ignored says why the annotation has no effect here, whatever stands in it, although it is nobody's mistake. Such a row
	// has Name and Risk besides.
	Ignored string

	// parse reads a value into the settings. An error is worded for whoever wrote the value; with a values.Remark the value
	// counts.
	parse func(*Settings, string) error
	// raw hands the value to parse as it stands. The others come without spaces round them, and an empty one asks for nothing.
	raw bool
	// closes says that an error closes the Ingress, because the annotation may keep requests out.
	closes bool
	// fail is called with an error, for what that makes of the settings.
	fail func(*Settings)
	// check says what is the matter with an annotation that was read, once the others are known. Empty is nothing.
	check func(*Settings) string
	// filters returns what the annotation puts into the way of a request on one path.
	filters func(*Settings, string) []ir.Filter
}

// Key is the name with its prefix.
func (a *Annotation) Key() string {
	if a.Own {
		return OwnPrefix + a.Name
	}
	return Prefix + a.Name
}

// Find returns the row of one of ingress-nginx's annotations by its name, or nil.
func Find(name string) *Annotation { return find(name, false) }

// FindOwn returns the row of one of our own annotations by its name without OwnPrefix, or nil.
func FindOwn(name string) *Annotation { return find(name, true) }

func find(name string, own bool) *Annotation {
	for i := range Table {
		if Table[i].Name == name && Table[i].Own == own {
			return &Table[i]
		}
	}
	return nil
}

// read brings a value into the settings.
func (a *Annotation) read(s *Settings, value string) error {
	if a.Ignored != "" {
		return nil
	}
	if err := CheckText(value); err != nil {
		return err
	}
	if !a.raw {
		if value = strings.TrimSpace(value); value == "" {
			return nil
		}
	}
	return a.parse(s, value)
}
