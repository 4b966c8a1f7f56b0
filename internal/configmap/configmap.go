// Package configmap reads the ConfigMap of ingress-nginx: the options for all Ingresses, or for those of one class. table.go
// lists its keys.
package configmap

//go:generate go test -run ^TestReference$ -update

import (
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/nginx"
	"github.com/k8singress/k8singress/internal/report"
)

// Config is what a ConfigMap says, as typed values.
type Config struct {
	// Defaults are for Ingresses whose annotations do not say otherwise.
	Defaults annotations.Settings
	// Global holds for every request. Its Streams are for the TCP and UDP ports, too, whose Service does not say otherwise.
	Global ir.Global
}

// Parse reads the data of a ConfigMap. A key that cannot be read is left out and reported; the others count. A key that keeps
// requests out and cannot do so here closes Defaults.
func Parse(data map[string]string) (*Config, []report.Problem) {
	r := reading{config: &Config{}}
	r.all(data)
	return r.config, r.problems
}

// ParseClass reads the data of the ConfigMap of one class on top of what holds for all. Keys that hold for the process as a
// whole have no effect there, and are reported.
func ParseClass(base annotations.Settings, data map[string]string) (annotations.Settings, []report.Problem) {
	r := reading{config: &Config{Defaults: base}, class: true}
	r.all(data)
	return r.config.Defaults, r.problems
}

// reading is a ConfigMap in the hands of Parse or ParseClass.
type reading struct {
	config   *Config
	class    bool
	problems []report.Problem
	// options are the keys that mean what the annotations of those names mean.
	options map[string]string
}

// all makes a panic a problem of the ConfigMap that caused it. What it would have kept out is not known then.
func (r *reading) all(data map[string]string) {
	base := r.config.Defaults
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		r.config.Defaults, r.config.Global = base, ir.Global{}
		r.config.Defaults.Closed = true
		r.problems = []report.Problem{{
			Severity: report.Error, Reason: report.Quarantined, Field: "data", Message: fmt.Sprintf(
				"the ConfigMap is left out, because reading it fails: %v; all requests for %s get 503, because it may keep requests out",
				p, r.closed()),
		}}
	}()
	r.options = map[string]string{}
	for name, value := range data {
		r.one(name, strings.TrimSpace(value))
	}
	defaults, problems := annotations.ParseOptions(r.config.Defaults, r.options)
	r.config.Defaults = *defaults
	r.config.Global.TLS = defaults.TLS
	for _, p := range problems {
		if p.Reason == report.InvalidAnnotation {
			p.Reason = report.InvalidEntry
		}
		r.note(p.Field, p)
	}
	slices.SortStableFunc(r.problems, func(a, b report.Problem) int { return strings.Compare(a.Field, b.Field) })
}

// one reads one key. An empty value asks for nothing.
func (r *reading) one(name, value string) {
	row := find(name)
	switch {
	case row == nil:
		r.other(name, value)
	case value == "":
	case row.Global && r.class:
		r.note(name, report.Problem{Severity: report.Warning, Reason: report.UnknownKey, Message: fmt.Sprintf(
			"the key %s holds for the process as a whole: it has an effect in the global ConfigMap only", name)})
	case row.parse == nil:
		r.options[name] = value
	default:
		r.parse(row, value)
	}
}

func (r *reading) parse(row *Key, value string) {
	err := row.parse(r.config, value)
	if err == nil {
		return
	}
	p := report.Problem{Severity: report.Error, Reason: report.InvalidEntry, Message: err.Error()}
	if nginx.Counts(err) {
		p.Severity = report.Warning
	}
	r.note(row.Name, p)
}

func (r *reading) note(name string, p report.Problem) {
	p.Field = "data[" + name + "]"
	r.problems = append(r.problems, p)
}
